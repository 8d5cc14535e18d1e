/* A program with nothing special about it; how it is linked is what matters. */
#include <stdio.h>
#include <stdlib.h>

static char *buffer;

int main(void)
{
	buffer = malloc(64);
	if (!buffer)
		return 1;
	(void)snprintf(buffer, 64, "hello");
	(void)puts(buffer);
	free(buffer);
	return 0;
}
