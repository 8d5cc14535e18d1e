/* Reads of memory that is not there any more, never was, or was never written. */
#include <signal.h>

#include "truth.h"

APART char *text_new(const char *from)
{
	char *text = malloc(strlen(from) + 1);

	strcpy(text, from);
	KEEP(text);
	return text;
}

static char *cache;

APART void reset(char *text)
{
	free(text);
	KEEP(text);
}

APART int same(const char *a, const char *b)
{
	return strcmp(a, b) == 0; /* guilty */
}

static int freed_compared(void)
{
	cache = text_new("number");
	reset(cache);
	return !same(cache, "number");
}

struct item {
	long id, pad[3];
};
static struct item *item_cache;

APART struct item *item_new(long id)
{
	struct item *item = calloc(1, sizeof(*item));

	item->id = id;
	item->pad[0] = id + 2;
	KEEP(item);
	return item;
}

APART int lookup(void)
{
	return item_cache->pad[0] == 9; /* guilty */
}

static int freed_reused(void)
{
	item_cache = item_new(7);
	reset((char *)item_cache);
	(void)item_new(8);
	if (lookup())
		return 0;
	puts("FAIL: lookup gave another item");
	return 1;
}

APART int check_name(void)
{
	if (same(cache, "alpha"))
		return 0;
	fprintf(stderr, "lookup: wrong name %s\n", cache);
	return 1;
}

static int freed_names(void)
{
	cache = text_new("alpha");
	reset(cache);
	(void)text_new("omega");
	return check_name();
}

APART int last_of(const volatile char *p)
{
	return p[16]; /* guilty */
}

static int freed_poison(void)
{
	char *p = calloc(1, 17);

	KEEP(p);
	reset(p);
	if (last_of(p)) {
		puts("failure");
		return 5;
	}
	return 0;
}

APART char *again(const char *text)
{
	return strdup(text); /* guilty */
}

static int freed_harmless(void)
{
	char *copied;

	cache = text_new("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
	reset(cache);
	copied = again(cache);
	free(copied);
	return 0;
}

APART unsigned int sum(const volatile unsigned char *p, int len)
{
	unsigned int s = 0;

	for (int i = 0; i < len; i++)
		s += p[i] != 1; /* guilty */
	return s;
}

static int past_loop(void)
{
	unsigned char *p = malloc(64);

	memset(p, 1, 64);
	KEEP(p);
	(void)!sum(p, 73);
	free(p);
	return 0;
}

APART size_t length(const char *text)
{
	return strlen(text); /* guilty */
}

static int past_text(void)
{
	char *p = malloc(32);

	memset(p, 'a', 32);
	KEEP(p);
	p = length(p) > 100000 ? NULL : p;
	free(p);
	return 0;
}

static int past_write(void)
{
	char *p = malloc(40);

	memset(p, 'a', 40);
	KEEP(p);
	(void)!write(1, p, 60); /* guilty */
	free(p);
	return 0;
}

APART int price(const int *table, int at)
{
	return table[at]; /* guilty */
}

static int past_index(void)
{
	int *table = malloc(16 * sizeof(int));

	for (int i = 0; i < 16; i++)
		table[i] = i;
	KEEP(table);
	printf("%d\n", price(table, 16) == 12345);
	free(table);
	return 0;
}

APART char *raw(size_t len)
{
	char *p = malloc(len); /* guilty */

	KEEP(p);
	return p;
}

static int unset_byte(void)
{
	char *p = raw(20);

	memcpy(p, "0123456789abcdefABC", 20);
	KEEP(p);
	free(p);
	p = raw(17);
	if (last_of(p)) {
		puts("failure");
		return 1;
	}
	return 0;
}

struct order {
	long id, *discount, sum;
};

APART struct order *order_new(long id)
{
	struct order *o = malloc(sizeof(*o)); /* guilty */

	o->id = id;
	o->sum = 7 * id;
	KEEP(o);
	return o;
}

APART long total(const struct order *o)
{
	return o->sum - *o->discount;
}

static int unset_pointer(void)
{
	printf("%ld\n", total(order_new(1)));
	return 0;
}

APART size_t trimmed(const volatile char *text, size_t len)
{
	while (text[len - 1] == ' ') /* guilty */
		len--;
	return len;
}

/* Of an empty text the byte before its block is read. */
static int before_text(void)
{
	char *text = calloc(1, 100);
	size_t len;

	KEEP(text);
	len = trimmed(text, 0);
	puts("done");
	free(text);
	return len == 7;
}

APART int matte(const volatile unsigned char *pixel, int samples)
{
	return 255 - pixel[samples]; /* guilty */
}

/* Behind the end, but within the bytes that malloc rounds up to. */
static int past_within_slack(void)
{
	unsigned char *row = calloc(1, 4);
	int sum = 0;

	KEEP(row);
	for (int i = 0; i < 2; i++)
		sum += matte(row, 3 + i);
	printf("%d\n", sum > 0);
	free(row);
	return 0;
}

/* ---- what was read from a freed block is followed elsewhere ---- */

struct names {
	char **list;
	size_t count, room;
};

struct walker {
	char **at, **end;
};

APART void names_add(struct names *names, const char *name)
{
	if (names->count == names->room) {
		char **more = malloc((names->room = names->room * 2 + 2) * sizeof(*more));

		for (size_t i = 0; i < names->count; i++)
			more[i] = names->list[i];
		KEEP(more);
		free(names->list);
		names->list = more;
	}
	names->list[names->count++] = strdup(name);
}

APART char *walker_next(struct walker *walker)
{
	return walker->at < walker->end ? *walker->at++ : NULL; /* guilty */
}

APART int is_long(const volatile char *name)
{
	return name[0] && name[1] && name[2];
}

APART int is_wanted(const char *name)
{
	int wanted = is_long(name) + 1;

	KEEP(name);
	return wanted;
}

/* The table grows under whoever walks over it. */
static int freed_walked(void)
{
	struct names names = { 0 };
	struct walker walker;
	int found = 0;

	names_add(&names, "alpha");
	names_add(&names, "beta");
	walker = (struct walker){ names.list, names.list + names.count };
	for (char *name; (name = walker_next(&walker));) {
		found += is_wanted(name);
		if (found == 2)
			names_add(&names, "gamma");
	}
	return found == 0;
}

struct calls {
	long id;
	int (*open)(int), (*close)(int);
};

struct device {
	struct calls *calls;
	int fd;
};

APART int device_answer(int fd)
{
	return fd > 100;
}

APART void calls_unload(struct calls *calls)
{
	free(calls);
	KEEP(calls);
}

APART int call(int (*function)(int), int fd)
{
	int answer = function(fd);

	KEEP(function);
	return answer;
}

APART int call_later(int (*function)(int), int fd)
{
	int answer = call(function, fd);

	KEEP(function);
	return answer;
}

APART int device_close(struct device *device)
{
	int answer = call_later(device->calls->close, device->fd); /* guilty */

	KEEP(device);
	return answer;
}

/* A table of functions is unloaded and its place taken when one of them is called. */
static int freed_callback(void)
{
	struct device device = { malloc(sizeof(struct calls)), 4 };
	volatile long *other;

	*device.calls = (struct calls){ 1, device_answer, device_answer };
	calls_unload(device.calls);
	other = malloc(sizeof(struct calls));
	other[1] = 77;
	other[2] = 78;
	return device_close(&device);
}

/* ---- what lies behind is somebody else's, and whole ---- */

struct peer {
	long id;
	char *host;
	long sent;
};
static struct peer *peers;
static int peer_count;

APART char *label_new(const char *text)
{
	char *label = calloc(1, 72);

	strcpy(label, text);
	KEEP(label);
	return label;
}

APART size_t host_length(int i)
{
	const struct peer *peer = peers + i;

	return strlen(peer->host); /* guilty */
}

/* One record too many: a label's text is taken for one. */
static int past_record(void)
{
	size_t sum = 0;
	char *label;

	peers = malloc((peer_count = 3) * sizeof(*peers));
	label = label_new("a label that fills the block which lies behind the records");
	for (int i = 0; i < peer_count; i++)
		peers[i] = (struct peer){ i, strdup("localhost"), 0 };
	for (int i = 0; i <= peer_count; i++)
		sum += host_length(i);
	puts(label);
	return sum == 0;
}

struct command {
	const char *name;
	int (*run)(int);
};

APART int command_run(const struct command *commands, int number, int argument)
{
	return commands[number].run(argument); /* guilty */
}

APART int twice(int n)
{
	return 2 * n;
}

/* A number that was not checked: the function is the middle of a sentence. */
static int past_command(void)
{
	struct command *commands = malloc(7 * sizeof(*commands) + 8);
	char *help = label_new("help: type a number between zero and six, please");
	int sum = 0;

	for (int i = 0; i < 7; i++)
		commands[i] = (struct command){ "twice", twice };
	KEEP(commands);
	for (int i = 0; i < 9; i++)
		sum += command_run(commands, i, i);
	puts(help);
	return sum == 0;
}

/* ---- a field that nobody sets: what it holds shows in the output ---- */

struct point {
	int x, y, colour;
};

APART struct point *point_new(int x, int y)
{
	struct point *p = malloc(sizeof(*p)); /* guilty */

	p->x = x;
	p->y = y;
	return p;
}

static int unset_output(void)
{
	for (int i = 0; i < 6; i++) {
		struct point *p = point_new(i, i * i);

		printf("%d %d %d\n", p->x, p->y, p->colour);
		free(p);
	}
	return 0;
}

/* ---- read in the freed block by one function, followed by the one that is called ---- */

struct port {
	struct line *line;
	struct port *next;
};
struct line {
	char *text;
	size_t length;
};
static struct port *ports;

APART struct port *port_open(const char *text)
{
	struct port *p = malloc(sizeof(*p));

	p->line = malloc(sizeof(*p->line));
	p->line->text = text_new(text);
	p->line->length = strlen(text);
	p->next = ports;
	ports = p;
	return p;
}

APART void port_close(struct port *p)
{
	free(p->line->text);
	free(p->line);
	free(p);
}

APART size_t line_sum(const struct line *l)
{
	size_t sum = 0;

	for (size_t i = 0; i < l->length; i++)
		sum += (unsigned char)l->text[i];
	return sum;
}

APART size_t port_sum(const struct port *p)
{
	return 1 + line_sum(p->line); /* guilty */
}

static int freed_handed(void)
{
	struct port *p = port_open("first");
	char *other;
	size_t sum;

	port_open("second");
	ports->next = NULL;
	port_close(p);
	other = malloc(sizeof(*p));
	memset(other, 0x61, sizeof(*p));
	KEEP(other);
	sum = port_sum(ports) + port_sum(p);
	free(other);
	return sum == 0;
}

/* ---- its index is gone when the freed block is read ---- */

struct request {
	long id;
	char *path;
	long times[4];
};
static struct request *queue[16];
static unsigned int queue_head, queue_tail;

APART void request_add(const char *path)
{
	struct request *r = malloc(sizeof(*r));

	r->path = text_new(path);
	queue[queue_tail++ % 16] = r;
}

APART void request_end(struct request *r)
{
	free(r->path);
	free(r);
}

APART size_t request_serve(const char *path)
{
	return strlen(path); /* guilty */
}

APART size_t requests_serve(void)
{
	size_t served = 0;

	while (queue_head < queue_tail) {
		struct request *r = queue[queue_head++ % 16];

		(void)raise(0);
		served += request_serve(r->path); /* guilty */
		request_end(r);
	}
	return served;
}

static int freed_queued(void)
{
	for (int i = 0; i < 12; i++)
		request_add("/index.html");
	request_end(queue[9]);
	return requests_serve() == 0;
}

/* ---- one bit of such a field decides the exit status ---- */

struct message {
	int type, len;
	unsigned flags;
	char body[36];
};

APART struct message *message_new(int type, const char *text)
{
	struct message *m = malloc(sizeof(*m)); /* guilty */

	m->type = type;
	m->len = (int)strlen(text);
	memcpy(m->body, text, (size_t)m->len);
	return m;
}

static int unset_flag(void)
{
	for (int i = 0; i < 5; i++) {
		struct message *m = message_new(i, "hello");

		if (m->flags & 4)
			return 3;
		free(m);
	}
	return 0;
}

static const struct truth_case cases[] = {
	{ "freed-walked", "class use-after-free\nclass dangling-holder\nwho walker_next\n",
	  freed_walked },
	{ "freed-callback", "class use-after-free\nclass dangling-holder\nwho device_close\n",
	  freed_callback },
	{ "freed-compared",
	  "class use-after-free\nclass dangling-holder\nwho same\nwho freed_compared\n",
	  freed_compared },
	{ "freed-reused", "class use-after-free\nclass dangling-holder\nwho lookup\n",
	  freed_reused },
	{ "freed-names", "class use-after-free\nclass dangling-holder\nwho same\nwho check_name\n",
	  freed_names },
	{ "freed-poison", "class use-after-free\nwho last_of\n", freed_poison },
	{ "freed-handed", "class use-after-free\nclass dangling-holder\nwho port_sum\n",
	  freed_handed },
	{ "freed-queued",
	  "class use-after-free\nclass dangling-holder\nwho requests_serve\nwho request_serve\n",
	  freed_queued },
	{ "freed-harmless", "class use-after-free\nwho again\n", freed_harmless },
	{ "past-loop", "class over-read\nwho sum\n", past_loop },
	{ "past-text", "class over-read\nwho length\n", past_text },
	{ "past-write", "class over-read\nwho past_write\n", past_write },
	{ "past-index", "class over-read\nwho price\n", past_index },
	{ "before-text", "class over-read\nwho trimmed\n", before_text },
	{ "past-within-slack", "class over-read\nwho matte\n", past_within_slack },
	{ "past-record", "class over-read\nwho host_length\n", past_record },
	{ "past-command", "class over-read\nwho command_run\n", past_command },
	{ "unset-byte", "class uninitialised\nwho raw\n", unset_byte },
	{ "unset-pointer", "class uninitialised\nwho order_new\n", unset_pointer },
	{ "unset-output", "class uninitialised\nwho point_new\n", unset_output },
	{ "unset-flag", "class uninitialised\nwho message_new\n", unset_flag },
};

TRUTH_MAIN(cases)
