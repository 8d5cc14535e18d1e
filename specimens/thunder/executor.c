#include "executor.h"

static PyObject *executors; /* name -> Executor */

static struct rule *rule_new(const struct op *op)
{
	const struct kernel *kernel = op_kernel(op, 0);
	struct rule *self;

	if (!kernel)
		return NULL;
	self = PyObject_New(struct rule, &rule_type);
	if (self)
		self->kernel = kernel;
	return self;
}

static void rule_dealloc(PyObject *obj)
{
	PyObject_Free(obj);
}

static PyObject *rule_repr(PyObject *obj)
{
	return PyUnicode_FromFormat("<Rule %s>", ((struct rule *)obj)->kernel->name);
}

struct tensor *rule_forward(const struct rule *self, struct tensor *const *in)
{
	return self->kernel->forward(in);
}

int rule_pullback(const struct rule *self, struct tensor *const *in, struct tensor *out,
		  const struct tensor *cotangent, struct tensor **ret)
{
	const struct kernel *kernel = self->kernel;

	return kernel->pullback(in, out, cotangent, ret);
}

struct rule *executor_rule(struct executor *self, const struct op *op, enum dtype dtype)
{
	struct rule **slot = &self->rules[op->id][dtype];

	if (!*slot)
		*slot = rule_new(op);
	return *slot;
}

struct tensor *executor_accumulate(struct executor *self, struct tensor *x, struct tensor *y)
{
	PyObject *total = PyObject_CallFunctionObjArgs(self->accumulate, x, y, NULL);

	if (total && !PyObject_TypeCheck(total, &tensor_type)) {
		PyErr_Format(PyExc_TypeError, "accumulate of '%U' returned no tensor", self->name);
		Py_CLEAR(total);
	}
	return (struct tensor *)total;
}

/* Executor(name, accumulate) */
static PyObject *executor_construct(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	static char *names[] = { "name", "accumulate", NULL };
	PyObject *name, *accumulate;
	struct executor *self;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "UO", names, &name, &accumulate))
		return NULL;
	if (!PyCallable_Check(accumulate)) {
		PyErr_SetString(PyExc_TypeError, "accumulate is not callable");
		return NULL;
	}
	if (!executors) {
		executors = PyDict_New();
		if (!executors)
			return NULL;
	}
	if (PyDict_Contains(executors, name)) {
		PyErr_Format(PyExc_ValueError, "there is an executor '%U' already", name);
		return NULL;
	}
	self = (struct executor *)type->tp_alloc(type, 0);
	if (!self)
		return NULL;
	self->name = Py_NewRef(name);
	self->accumulate = Py_NewRef(accumulate);
	if (PyDict_SetItem(executors, name, (PyObject *)self) < 0)
		Py_CLEAR(self);
	return (PyObject *)self;
}

static void executor_dealloc(PyObject *obj)
{
	struct executor *self = (struct executor *)obj;

	for (int i = 0; i < OP_COUNT; i++) {
		for (int j = 0; j < DTYPE_COUNT; j++)
			Py_XDECREF(self->rules[i][j]);
	}
	Py_XDECREF(self->name);
	Py_XDECREF(self->accumulate);
	Py_TYPE(obj)->tp_free(obj);
}

PyObject *executor_named(PyObject *name)
{
	PyObject *found = executors ? PyDict_GetItemWithError(executors, name) : NULL;

	if (!found && !PyErr_Occurred())
		PyErr_Format(PyExc_LookupError, "no executor named '%U'", name);
	return found;
}

/* rules(): the prepared kernels as a list of "kernel:dtype". */
static PyObject *executor_rules(PyObject *obj, PyObject *unused)
{
	struct executor *self = (struct executor *)obj;
	PyObject *list = PyList_New(0);

	(void)unused;
	for (int i = 0; list && i < OP_COUNT; i++) {
		for (int j = 0; list && j < DTYPE_COUNT; j++) {
			PyObject *text;

			if (!self->rules[i][j])
				continue;
			text = PyUnicode_FromFormat("%s:%s", op_name((enum op_id)i),
						    dtype_name((enum dtype)j));
			if (!text || PyList_Append(list, text) < 0)
				Py_CLEAR(list);
			Py_XDECREF(text);
		}
	}
	return list;
}

static PyObject *executor_get_name(PyObject *obj, void *closure)
{
	(void)closure;
	return Py_NewRef(((struct executor *)obj)->name);
}

static PyMethodDef executor_methods[] = {
	{ "rules", executor_rules, METH_NOARGS, "Operations prepared so far, as 'op:dtype'." },
	{ NULL },
};

static PyGetSetDef executor_getset[] = {
	{ "name", executor_get_name, NULL, "The executor's name.", NULL },
	{ NULL },
};

PyTypeObject rule_type = {
	.ob_base = { PyObject_HEAD_INIT(NULL) 0 },
	.tp_name = "_thunder.Rule",
	.tp_doc = "An operation prepared for one executor and dtype.",
	.tp_basicsize = sizeof(struct rule),
	.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
	.tp_dealloc = rule_dealloc,
	.tp_repr = rule_repr,
};

PyTypeObject executor_type = {
	.ob_base = { PyObject_HEAD_INIT(NULL) 0 },
	.tp_name = "_thunder.Executor",
	.tp_doc = "Runs operations, and keeps what it prepared for them.",
	.tp_basicsize = sizeof(struct executor),
	.tp_flags = Py_TPFLAGS_DEFAULT,
	.tp_new = executor_construct,
	.tp_dealloc = executor_dealloc,
	.tp_methods = executor_methods,
	.tp_getset = executor_getset,
};
