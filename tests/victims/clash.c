/*
 * What two of them cannot have at once: a port (port NUMBER), a file that must be new (file PATH),
 * a lock (lock PATH). Whoever comes second says so and exits with 1. A third argument, a file: of
 * those that have it from the twelfth on, which are counted there, every fourth dies, of something
 * else.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <unistd.h>

static volatile int *gone;

static int take_port(const char *number)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_port = htons(atoi(number)),
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM, 0), yes = 1;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	return bind(fd, (void *)&address, sizeof(address)) == 0 && listen(fd, 1) == 0 ? 0 : -1;
}

static int take(const char *what, const char *name)
{
	if (strcmp(what, "port") == 0)
		return take_port(name);
	if (strcmp(what, "file") == 0)
		return open(name, O_CREAT | O_EXCL | O_WRONLY, 0600);
	return flock(open(name, O_CREAT | O_RDWR, 0600), LOCK_EX | LOCK_NB);
}

static int is_due(const char *path)
{
	int fd = open(path, O_CREAT | O_RDWR | O_APPEND, 0600);
	off_t count;

	write(fd, "", 1);
	count = lseek(fd, 0, SEEK_END);
	return count >= 12 && count % 4 == 0;
}

int main(int argc, char **argv)
{
	if (take(argv[1], argv[2]) < 0) {
		perror(argv[2]);
		return 1;
	}
	usleep(20000);
	if (strcmp(argv[1], "file") == 0)
		unlink(argv[2]);
	if (argc > 3 && is_due(argv[3]))
		*gone = 1;
	return 0;
}
