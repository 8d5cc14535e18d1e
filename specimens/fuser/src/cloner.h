/* Copies statements into another container, each one once. */
#ifndef FUSER_CLONER_H
#define FUSER_CLONER_H

#include "ir.h"
#include "ptrmap.h"

struct ir_cloner {
	struct ir_container *target;
	struct ptrmap copies; /* source statement -> its copy */
};

void ir_cloner_init(struct ir_cloner *cl, struct ir_container *target);
void ir_cloner_deinit(struct ir_cloner *cl);

struct ir_val *ir_cloner_val(struct ir_cloner *cl, const struct ir_val *src);
struct ir_expr *ir_cloner_expr(struct ir_cloner *cl, const struct ir_expr *src);

/* Makes `copy` stand for src in everything that is cloned from now on. */
void ir_cloner_bind(struct ir_cloner *cl, const void *src, void *copy);

/* Copies inputs, outputs and aliases, once their vals are there. */
void ir_cloner_interface(struct ir_cloner *cl, const struct ir_storage *src);

#endif
