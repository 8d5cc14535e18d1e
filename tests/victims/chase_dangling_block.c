/*
 * Widgets. A panel that is closed takes its buttons along, but not those that were moved to
 * another panel: they keep the old one as their parent.
 */
#include <stdio.h>
#include <stdlib.h>

#include "chase_truth.h"

struct theme {
	const char *name;
	long lookups;
};

struct panel {
	struct theme *theme;
	struct button *buttons;
	long width;
	int id;
};

struct button {
	struct panel *parent;
	struct button *next;
	char label[24];
};

static struct panel *panels[30];
static char *messages[100];
static int message_count, open_panels;

APART static struct theme *theme_new(const char *name)
{
	struct theme *theme = calloc(1, 72);

	if (!theme)
		exit(3);
	theme->name = name;
	return theme;
}

APART static struct panel *panel_open(struct theme *theme, int id)
{
	struct panel *panel = malloc(sizeof(*panel));

	if (!panel)
		exit(3);
	*panel = (struct panel){ theme, NULL, 100 + id, id };
	open_panels++;
	return panel;
}

APART static struct button *button_new(struct panel *parent, int number)
{
	struct button *button = malloc(sizeof(*button));

	if (!button)
		exit(3);
	snprintf(button->label, sizeof(button->label), "button %d", number);
	button->parent = parent;
	button->next = parent->buttons;
	parent->buttons = button;
	return button;
}

/* The first button of one panel becomes the first of another. */
APART static void button_move(struct panel *from, struct panel *to)
{
	struct button *button = from->buttons;

	from->buttons = button->next;
	button->next = to->buttons;
	to->buttons = button;
}

APART static void panel_close(struct panel *panel)
{
	while (panel->buttons) {
		struct button *button = panel->buttons;

		panel->buttons = button->next;
		free(button);
	}
	free(panel);
	open_panels--;
}

APART static void message_show(const char *what, int number)
{
	char *message = malloc(32);

	if (!message)
		exit(3);
	snprintf(message, 32, "%s (%d)", what, number);
	messages[message_count++] = message;
}

APART static long button_draw(const struct button *button)
{
	return ++button->parent->theme->lookups + button->label[7];
}

APART static long panels_draw(void)
{
	long drawn = 0;

	for (int i = 0; i < 30; i++)
		for (struct button *b = panels[i] ? panels[i]->buttons : NULL; b; b = b->next)
			drawn += button_draw(b);
	return drawn;
}

int main(void)
{
	struct theme *dark = theme_new("dark"), *light = theme_new("light");
	long drawn;

	tell_truth("class dangling-holder\n"
		   "class use-after-free\n"
		   "holder chase_dangling_block.c:button_new\n"
		   "freer chase_dangling_block.c:panel_close\n"
		   "allocator chase_dangling_block.c:panel_open\n"
		   "reader chase_dangling_block.c:button_draw\n");
	for (int i = 0; i < 30; i++) {
		panels[i] = panel_open(i % 2 ? dark : light, i);
		for (int j = 0; j < 7; j++)
			button_new(panels[i], 10 * i + j);
	}
	drawn = panels_draw();
	button_move(panels[17], panels[4]);
	for (int i = 16; i < 20; i++) {
		panel_close(panels[i]);
		panels[i] = NULL;
	}
	for (int i = 0; i < 12; i++)
		message_show("a panel was closed", i);
	printf("drawn %ld, %d open\n", drawn + panels_draw(), open_panels);
	return 0;
}
