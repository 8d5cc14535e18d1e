#pragma once

#include <stdbool.h>

#include "base/strbuf.h"

/*
 * One test, several spellings: what a framework prints of a test is not always what it takes.
 *
 *   tests/test_grad.py::test_vjp_thunder.dtypes.float32      pytest's id
 *   tests/test_grad.py::test_vjp_thunder::dtypes::float32    pytest -v
 *   test_parse (tests.test_io.Reader.test_parse)             unittest -v of Python 3.11 and later
 *   test_parse (tests.test_io.Reader)                        and before
 *   tests.test_io.Reader.test_parse                          unittest's id
 */

/* Adds the spelling that all others of the same test have, too; for comparing, not for people. */
void test_name_spell(const char *name, struct strbuf *ret);

/* As unittest takes it, from what it prints: NAME (MODULE.CLASS.NAME). NULL: it is no such line. */
char *test_name_dotted(const char *name);

bool test_name_same(const char *a, const char *b);
