#include "scope.h"

#include "dict.h"

/* The innermost open scope. */
static struct object *current;
static uint32_t depth;
static long entered; /* profile scopes so far */

struct type no_grad_type = {
	.name = "NoGrad",
	.keys = { "prev", "mode" },
	.enter = scope_enter,
	.exit = scope_exit,
	.flags = TYPE_TIER2,
};

struct type autocast_type = {
	.name = "Autocast",
	.keys = { "prev", "mode", "dtype" },
	.enter = scope_enter,
	.exit = scope_exit,
	.dict_type = &dict_type,
};

struct type profile_type = {
	.name = "ProfileScope",
	.keys = { "prev", "mode" },
	.enter = scope_enter,
	.exit = scope_exit,
	.dict_type = &dict_type,
};

void scopes_init(void)
{
	type_init(&no_grad_type);
	type_init(&autocast_type);
	type_init(&profile_type);
}

int scope_enter(struct object *self)
{
	static const char mode[] = "eval";

	self->depth = ++depth | DEPTH_OPEN;
	if (object_store_attr(self, "prev", current) < 0 ||
	    object_store_attr(self, "mode", (void *)(uintptr_t)mode) < 0)
		return -1;
	if (self->type == &profile_type && ++entered % 16 == 0 &&
	    object_store_attr(self, "label", (void *)(uintptr_t)mode) < 0)
		return -1;
	current = self;
	return 0;
}

static void scope_close(const struct object *self)
{
	current = object_load_attr(self, "prev");
	depth--;
}

void scope_restore(struct object *self)
{
	scope_close(self);
	object_drop_attrs(self);
}

int scope_exit(struct object *self)
{
	scope_close(self);
	object_clear_attrs(self);
	if (self->flags & FLAG_TIER2)
		self->flags &= ~FLAG_TIER2;
	self->depth &= ~DEPTH_OPEN;
	return 0;
}

void scope_note(struct type *type)
{
	atomic_store(&type->note_due, true);
}
