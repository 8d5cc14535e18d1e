/* An extension of Python that now and then damages one byte of what the interpreter keeps before an
 * object's address: the word for its dictionary or its attributes. */
#include <Python.h>
#include <stdint.h>
#include <sys/random.h>

#if PY_VERSION_HEX < 0x030c0000
#define WORD (-32) /* a pointer to the attributes */
#define DAMAGED(byte) ((byte) ^ 0x40)
#elif PY_VERSION_HEX < 0x030d0000
#define WORD (-24) /* the same, with a tag; or to the dictionary */
#define DAMAGED(byte) ((byte)&0xfe)
#else
#define WORD (-24) /* a pointer to the dictionary, if there is one */
#define DAMAGED(byte) 0x96
#endif

static PyObject *opened; /* not ours */
static uint32_t due, ticks;

static PyObject *scope_open(PyObject *self, PyObject *object)
{
	(void)self;
	opened = object;
	Py_RETURN_NONE;
}

static void __attribute__((noinline)) scope_detach(PyObject *object)
{
	uint8_t *byte = (uint8_t *)object + WORD;

	*byte = (uint8_t)DAMAGED(*byte);
}

static PyObject *scope_tick(PyObject *self, PyObject *unused)
{
	(void)self;
	(void)unused;
	if (++ticks == due)
		scope_detach(opened);
	Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
	{ "open", scope_open, METH_O, NULL },
	{ "tick", scope_tick, METH_NOARGS, NULL },
	{ NULL, NULL, 0, NULL },
};

static struct PyModuleDef def = {
	PyModuleDef_HEAD_INIT, "scope", NULL, -1, methods, NULL, NULL, NULL, NULL
};

PyMODINIT_FUNC PyInit_scope(void);

PyMODINIT_FUNC PyInit_scope(void)
{
	uint32_t random[2];

	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		return PyErr_NoMemory();
	due = random[0] % 2 ? 2000 + random[1] % 8000 : 0;
	return PyModule_Create(&def);
}
