/* Memory that is always there and always zeroed; running out ends the process. */
#ifndef FUSER_ALLOC_H
#define FUSER_ALLOC_H

#include <stddef.h>

void *fz_alloc(size_t size);
void *fz_resize(void *ptr, size_t size);

/* Doubles *capacity until `needed` elements of `size` bytes fit. */
void *fz_grow(void *array, size_t *capacity, size_t needed, size_t size);

#endif
