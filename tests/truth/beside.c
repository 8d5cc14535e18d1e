/*
 * Arrays of the data segment and of frames, and what lies beside them: nothing but a wrong result
 * shows what was written there. And programs that look so and are innocent: they fail for what they
 * were given.
 */
#include "truth.h"

static int refused(const char *why)
{
	fprintf(stderr, "%s\n", why);
	return 3;
}

/* ---- the data segment ---- */

/* Compilers turn the order round or leave it: what is watched stands on both sides. */
int score_least;
int scores[8];
int score_most;

APART void score_put(int who, int score)
{
	scores[who] = score; /* guilty */
}

APART int score_sum(void)
{
	int sum = 0;

	for (int i = 0; i < 8; i++)
		sum += scores[i];
	return score_least == 0 && score_most == 0 ? sum : -1;
}

static int data_index(void)
{
	for (int i = 0; i <= 8; i++)
		score_put(i, i + 1);
	return score_sum() < 0 ? refused("there is a limit") : 0;
}

struct point {
	int x, y;
	short layer, flags;
};

long corner_seed = 0x51515151;
struct point corners[4] = { { 1, 1 } };
long corner_key = 0x51515151;

APART void corners_move(struct point *at, int count)
{
	for (int i = 0; i < count; i++) {
		at[i].x = i;	 /* guilty */
		at[i].y = i;	 /* guilty */
		at[i].layer = 1; /* guilty */
		at[i].flags = 2; /* guilty */
	}
}

APART long seed_of(void)
{
	return corner_seed == 0x51515151 ? corner_key : corner_seed;
}

static int data_structs(void)
{
	corners_move(corners, 5); /* guilty */
	return seed_of() != 0x51515151 ? refused("the seed is another") : 0;
}

unsigned char wall[8];
unsigned char rows[4][8];
unsigned char fence[8];

APART void row_paint(int row, int from, int count)
{
	for (int i = 0; i < count; i++)
		rows[row][from + i] = 7; /* guilty */
}

APART int wall_height(void)
{
	int sum = 0;

	for (int i = 0; i < 8; i++)
		sum += wall[i] + fence[i];
	return sum;
}

static int data_rows(void)
{
	row_paint(1, 0, 8);
	row_paint(3, 4, 7);
	return wall_height() != 0 ? refused("the wall is too high") : 0;
}

long totals[4] = { 5, 5, 5, 5 };
long slots[4] = { 1, 2, 3, 4 };
long averages[4] = { 5, 5, 5, 5 };

APART int slot_find(long value)
{
	for (int i = 0; i < 4; i++)
		if (slots[i] == value)
			return i;
	return -1;
}

APART void slot_replace(long value, long by)
{
	slots[slot_find(value)] = by; /* guilty */
}

APART long total(void)
{
	return totals[3] + averages[3];
}

static int data_before(void)
{
	slot_replace(3, 30);
	slot_replace(77, 70);
	return total() != 10 ? refused("the total is off") : 0;
}

long port_from = 80;
char host[16] = "localhost";
long port_to = 80;

APART void host_set(const char *name)
{
	strcpy(host, name); /* guilty */
	KEEP(name);
}

APART long port_of(void)
{
	return port_from == 80 ? port_to : port_from;
}

static int data_text(void)
{
	host_set("a.rather.long.name");
	return port_of() != 80 ? refused("no such port") : 0;
}

/* ---- frames ---- */

APART int word_valid(const char *text)
{
	volatile int bad = 0;
	char word[12];
	volatile int worse = 0;
	size_t i;

	KEEP(text);
	for (i = 0; text[i] != '\0'; i++)
		*(volatile char *)&word[i] = text[i]; /* guilty */
	*(volatile char *)&word[i] = '\0';	      /* guilty */
	return bad == 0 && worse == 0 && word[0] != '\0';
}

static int frame_flag(void)
{
	return word_valid("abcdefghijklmn") ? 0 : refused("no word");
}

APART void verb_take(char *to, const char *from)
{
	while (*from != '\0' && *from != ' ')
		*(volatile char *)to++ = *from++; /* guilty */
}

APART int request_take(const char *line)
{
	int sums[4] = { 0 };
	char verb[8] = "";
	int marks[4] = { 0 };
	int sum = 0;

	verb_take(verb, line); /* guilty */
	__asm__ volatile("" : : "r"(sums), "r"(verb), "r"(marks) : "memory");
	for (int i = 0; i < 4; i++)
		sum += sums[i] + marks[i];
	return sum;
}

static int frame_walk(void)
{
	return request_take("PROPFINDALL /x") != 0 ? refused("the sum is off") : 0;
}

/* ---- frames that were left ---- */

struct limits {
	const char *title;
	int *list;
};

struct limits limits;

APART void limits_set(int from)
{
	int list[4];

	for (int i = 0; i < 4; i++)
		*(volatile int *)&list[i] = from + i;
	limits.list = list; /* guilty */
	limits.title = "limits";
}

APART int others_use(int with)
{
	volatile int others[24];

	for (int i = 0; i < 24; i++)
		others[i] = with * i;
	return others[7];
}

static int left_kept(void)
{
	int sum = 0;

	limits_set(10);
	(void)others_use(3);
	for (int i = 0; i < 4; i++)
		sum += *(volatile int *)&limits.list[i];
	return sum != 46 ? refused("the limits are off") : 0;
}

char *line_now;

APART void line_take(const char *from)
{
	char line[32];

	strcpy(line, from);
	line_now = line; /* guilty */
	KEEP(from);
}

APART int line_letters(void)
{
	int count = 0;

	for (const volatile char *at = line_now; *at != '\0' && count < 32; at++)
		count++;
	return count;
}

static int left_text(void)
{
	int before = others_use(2);

	line_take("a line of text");
	before += others_use(-1);
	return line_letters() != 14 ? refused("not a line") : before == 7000;
}

struct window {
	int from, to, step[6];
};

struct window *window;

APART void window_set(int from)
{
	struct window made;

	*(volatile int *)&made.from = from;
	*(volatile int *)&made.to = from + 1;
	window = &made; /* guilty */
}

APART int window_sum(void)
{
	return *(volatile int *)&window->from + *(volatile int *)&window->to;
}

APART int window_lend(int from)
{
	struct window lent;
	int sum;

	*(volatile int *)&lent.from = *(volatile int *)&lent.to = from;
	window = &lent;
	sum = window_sum();
	window = NULL;
	return sum;
}

/* Others keep the address of a local there, too, before and afterwards, while it lives. */
static int left_between(void)
{
	int sum = window_lend(2);

	window_set(5);
	(void)others_use(2);
	sum += window_sum();
	sum += window_lend(3);
	return sum != 21 ? refused("the window is off") : 0;
}

/* ---- innocent ---- */

int *lent, *unused;

APART int lent_sum(void)
{
	int sum = 0;

	for (int i = 0; i < 4; i++)
		sum += *(volatile int *)&lent[i];
	return sum;
}

/* A local whose address is kept while its function waits for whoever reads it; and one whose
 * address nobody takes away, and nobody reads. */
static int innocent_lent(void)
{
	volatile int list[4] = { 1, 2, 3, 4 };
	int sum;

	lent = (int *)list;
	limits_set(5);
	unused = limits.list;
	sum = lent_sum() + others_use(0);
	return sum == 10 ? refused("ten") : 0;
}

struct settings {
	char name[16];
	int level;
	long limits[4];
};

struct settings settings;
char aliases[16];
int epoch;

APART void settings_fill(void *to, int with, size_t len)
{
	memset(to, with, len);
	KEEP(to);
}

/* A structure is filled over all of its members, and so is what lies beside it. */
static int innocent_fill(void)
{
	settings_fill(&settings, 7, sizeof(settings));
	settings_fill(aliases, 1, sizeof(aliases));
	settings_fill(&epoch, 0, sizeof(epoch));
	return settings.level != 0 ? refused("no such level") : 0;
}

struct node {
	int value;
	struct node *next;
	int list;
	long kept[3];
};

struct node first, second;
int marks[4];

APART void node_touch(int *list)
{
	struct node *node = (struct node *)((char *)list - offsetof(struct node, list));

	node->value = 5;
	node->kept[2] = 9;
	node->next = &second;
}

/* From a member back to what it is a member of; and from the end of an array down. */
static int innocent_member(void)
{
	node_touch(&first.list);
	node_touch(&second.list);
	for (int *at = marks + 4; at-- > marks;)
		*(volatile int *)at = 6;
	return first.value + marks[3] == 11 ? refused("eleven") : 0;
}

int key[16], mask[16];

/* An index that begins at 16: the address that it is added to lies in front of the array. */
APART void key_split(const int *from)
{
	for (int i = 0; i < 16; i++)
		*(volatile int *)&key[i] = from[i];
	for (int i = 16; i < 32; i++)
		*(volatile int *)&mask[i - 16] = from[i];
}

static int innocent_shifted(void)
{
	int from[32];

	for (int i = 0; i < 32; i++)
		from[i] = i;
	key_split(from);
	return mask[15] == 31 ? refused("the mask is too long") : 0;
}

unsigned char heads[3][8], tail[8];

APART void bytes_put(unsigned char *to, int count)
{
	for (int i = 0; i < count; i++)
		*(volatile unsigned char *)to++ = (unsigned char)(i + 1);
}

/* One function walks over one array after the other, each to its end. */
static int innocent_walked(void)
{
	unsigned char own[8], others[8];

	for (int i = 0; i < 3; i++)
		bytes_put(heads[i], 8);
	bytes_put(tail, 8);
	bytes_put(own, 8);
	bytes_put(others, 8);
	return tail[7] == others[7] && own[0] == 1 ? refused("they are alike") : 0;
}

struct header {
	uint32_t magic;
	uint16_t kind, len;
	uint64_t stamp;
};

struct header header, header_copy;
uint8_t raw[sizeof(struct header)];

APART void bytes_copy(void *to, const void *from, size_t len)
{
	uint8_t *t = to;
	const uint8_t *f = from;

	while (len-- > 0)
		*(volatile uint8_t *)t++ = *f++;
}

static int innocent_serialised(void)
{
	struct header made = { 1, 2, 3, 4 };

	bytes_copy(&header, &made, sizeof(made));
	bytes_copy(raw, &header, sizeof(raw));
	bytes_copy(&header_copy, raw, sizeof(raw));
	return header_copy.magic == 1 ? refused("version 1 is not supported") : 0;
}

/* Either of two arrays, as it comes: the code alone does not tell which. */
static int innocent_either(void)
{
	char names[8], titles[8];
	char *to = getpid() > 1 ? names : titles;

	__asm__ volatile("" : : "r"(names), "r"(titles) : "memory");
	for (int i = 0; i < 8; i++)
		((volatile char *)to)[i] = 'x';
	to = getpid() > 1 ? titles : names;
	for (int i = 0; i < 8; i++)
		((volatile char *)to)[i] = 'y';
	return titles[7] == 'y' ? refused("no such title") : 0;
}

/* Where one array begins another one ends, and only a macro names that. */
#define PILE_TOP (pile + 8)

int heap[8];
int pile[8];

APART int pile_run(int count)
{
	int *top = PILE_TOP;
	int *at = heap;

	for (int i = 0; i < count; i++) {
		*(volatile int *)--top = i + 1;
		*(volatile int *)at++ = heap[count - 1] + 1;
	}
	return *top + at[-1];
}

static int innocent_pile(void)
{
	return pile_run(8) == 9 ? refused("nine") : 0;
}

#define FLOOR_END (levels + 8)

int ceilings[8];
int levels[8];

APART void ints_down(int *at, int count)
{
	while (count-- > 0)
		*(volatile int *)--at = count + 3;
}

APART void ints_up(int *at, int count)
{
	while (count-- > 0)
		*(volatile int *)at++ = count + 3;
}

static int innocent_end(void)
{
	ints_down(FLOOR_END, 8);
	ints_up(ceilings, 8);
	return levels[0] + ceilings[7] != 0 ? refused("levels") : 0;
}

static const struct truth_case cases[] = {
	{ "data-index", "class overflow\nwho score_put\n", data_index },
	{ "data-structs", "class overflow\nwho corners_move\n", data_structs },
	{ "data-rows", "class overflow\nwho row_paint\n", data_rows },
	{ "data-before", "class underflow\nwho slot_replace\n", data_before },
	{ "data-text", "class overflow\nwho host_set\n", data_text },
	{ "frame-flag", "class overflow\nwho word_valid\n", frame_flag },
	{ "frame-walk", "class overflow\nwho verb_take\n", frame_walk },
	{ "left-kept", "class dangling-holder\nwho limits_set\n", left_kept },
	{ "left-text", "class dangling-holder\nwho line_take\n", left_text },
	{ "left-between", "class dangling-holder\nwho window_set\n", left_between },
	{ "lent", "class none\n", innocent_lent },
	{ "fill", "class none\n", innocent_fill },
	{ "member", "class none\n", innocent_member },
	{ "shifted", "class none\n", innocent_shifted },
	{ "walked", "class none\n", innocent_walked },
	{ "serialised", "class none\n", innocent_serialised },
	{ "either", "class none\n", innocent_either },
	{ "pile", "class none\n", innocent_pile },
	{ "end", "class none\n", innocent_end },
};

TRUTH_MAIN(cases)
