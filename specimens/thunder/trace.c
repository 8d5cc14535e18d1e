#include "trace.h"

#include <string.h>

/* One value of the program: an input (op is NULL) or the result of an operation. */
struct node {
	PyObject *name;
	const struct op *op;
	Py_ssize_t inputs[OP_MAX_ARITY]; /* indices of earlier nodes */
	struct tensor *value;
	int consumers; /* nodes that use this one */
};

struct trace {
	PyObject ob_base;
	struct executor *executor;
	struct rule *batched; /* owned; runs the batched operation, NULL when there is none */
	struct node *nodes;
	Py_ssize_t count;
	Py_ssize_t capacity;
	Py_ssize_t *outputs;
	Py_ssize_t output_count;
};

/* Trace(executor) */
static PyObject *trace_construct(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	static char *names[] = { "executor", NULL };
	PyObject *executor;
	struct trace *self;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!", names, &executor_type, &executor))
		return NULL;
	self = (struct trace *)type->tp_alloc(type, 0);
	if (self)
		self->executor = (struct executor *)Py_NewRef(executor);
	return (PyObject *)self;
}

static void trace_dealloc(PyObject *obj)
{
	struct trace *self = (struct trace *)obj;

	for (Py_ssize_t i = 0; i < self->count; i++) {
		Py_XDECREF(self->nodes[i].name);
		Py_XDECREF(self->nodes[i].value);
	}
	PyMem_RawFree(self->nodes);
	PyMem_RawFree(self->outputs);
	Py_CLEAR(self->batched);
	Py_CLEAR(self->executor);
	Py_TYPE(obj)->tp_free(obj);
}

/* Appends an empty node and gives it a name. NULL with an exception set on failure. */
static struct node *trace_append(struct trace *self)
{
	struct node *node;

	if (self->count == self->capacity) {
		Py_ssize_t capacity = self->capacity ? self->capacity * 2 : 8;
		struct node *nodes =
			PyMem_RawRealloc(self->nodes, (size_t)capacity * sizeof(*nodes));

		if (!nodes) {
			PyErr_NoMemory();
			return NULL;
		}
		self->nodes = nodes;
		self->capacity = capacity;
	}
	node = &self->nodes[self->count];
	memset(node, 0, sizeof(*node));
	node->name = PyUnicode_FromFormat("t%zd", self->count);
	if (!node->name)
		return NULL;
	self->count++;
	return node;
}

/* The index of a value, or -1 with an exception set. */
static Py_ssize_t trace_lookup(const struct trace *self, PyObject *name)
{
	for (Py_ssize_t i = 0; PyUnicode_Check(name) && i < self->count; i++) {
		if (PyUnicode_Compare(self->nodes[i].name, name) == 0)
			return i;
	}
	PyErr_Format(PyExc_LookupError, "no value named %R in this trace", name);
	return -1;
}

/* Gathers the operands of a node. Borrowed. */
static void trace_operands(const struct trace *self, const struct node *node, struct tensor **ret)
{
	for (int i = 0; i < node->op->arity; i++)
		ret[i] = self->nodes[node->inputs[i]].value;
}

/*
 * The rule for an operation on operands of `rank`. An operation that was prepared for
 * fewer dimensions is widened. Borrowed from the executor.
 */
static struct rule *trace_rule(struct trace *self, const struct op *op, enum dtype dtype, int rank)
{
	struct rule *rule = executor_rule(self->executor, op, dtype);

	if (!rule)
		return NULL;
	if (rule->kernel->max_rank < rank) {
		const struct kernel *wider = op_kernel(op, rank);

		if (!wider)
			return NULL;
		rule->kernel = wider;
		Py_XSETREF(self->batched, rule);
	} else if (op->kernels->max_rank < rank) {
		Py_INCREF(rule);
		Py_XSETREF(self->batched, rule);
	}
	return rule;
}

/* input(tensor) -> name */
static PyObject *trace_input(PyObject *obj, PyObject *tensor)
{
	struct trace *self = (struct trace *)obj;
	struct node *node;

	if (!PyObject_TypeCheck(tensor, &tensor_type)) {
		PyErr_SetString(PyExc_TypeError, "an input is a tensor");
		return NULL;
	}
	node = trace_append(self);
	if (!node)
		return NULL;
	node->value = (struct tensor *)Py_NewRef(tensor);
	return Py_NewRef(node->name);
}

/* apply(op, *names) -> name */
static PyObject *trace_apply(PyObject *obj, PyObject *const *args, Py_ssize_t nargs)
{
	struct tensor *operands[OP_MAX_ARITY];
	struct trace *self = (struct trace *)obj;
	Py_ssize_t inputs[OP_MAX_ARITY];
	const char *text = nargs > 0 ? PyUnicode_AsUTF8(args[0]) : "";
	const struct op *op = text ? op_find(text) : NULL;
	struct tensor *value;
	struct node *node;
	struct rule *rule;
	int rank = 0;

	if (!op)
		return NULL;
	if (nargs - 1 != op->arity) {
		PyErr_Format(PyExc_TypeError, "'%s' takes %d operands, not %zd", op->name,
			     op->arity, nargs - 1);
		return NULL;
	}
	for (int i = 0; i < op->arity; i++) {
		inputs[i] = trace_lookup(self, args[i + 1]);
		if (inputs[i] < 0)
			return NULL;
		operands[i] = self->nodes[inputs[i]].value;
		rank = Py_MAX(rank, operands[i]->rank);
	}
	rule = trace_rule(self, op, operands[0]->dtype, rank);
	if (!rule)
		return NULL;
	value = rule_forward(rule, operands);
	if (!value)
		return NULL;
	node = trace_append(self);
	if (!node) {
		Py_DECREF(value);
		return NULL;
	}
	node->op = op;
	node->value = value;
	for (int i = 0; i < op->arity; i++) {
		node->inputs[i] = inputs[i];
		self->nodes[inputs[i]].consumers++;
	}
	return Py_NewRef(node->name);
}

/* returns(*names): what the program returns */
static PyObject *trace_returns(PyObject *obj, PyObject *const *args, Py_ssize_t nargs)
{
	struct trace *self = (struct trace *)obj;
	Py_ssize_t *outputs = PyMem_RawCalloc((size_t)nargs + 1, sizeof(*outputs));

	if (!outputs)
		return PyErr_NoMemory();
	for (Py_ssize_t i = 0; i < nargs; i++) {
		outputs[i] = trace_lookup(self, args[i]);
		if (outputs[i] < 0) {
			PyMem_RawFree(outputs);
			return NULL;
		}
	}
	PyMem_RawFree(self->outputs);
	self->outputs = outputs;
	self->output_count = nargs;
	Py_RETURN_NONE;
}

/* matches(tensors) -> whether the trace was recorded for these shapes and types */
static PyObject *trace_matches(PyObject *obj, PyObject *tensors)
{
	struct trace *self = (struct trace *)obj;
	Py_ssize_t next = 0;

	if (!PyTuple_Check(tensors)) {
		PyErr_SetString(PyExc_TypeError, "a tuple of tensors is wanted");
		return NULL;
	}
	for (Py_ssize_t i = 0; i < self->count; i++) {
		PyObject *given;

		if (self->nodes[i].op)
			continue;
		if (next == PyTuple_GET_SIZE(tensors))
			Py_RETURN_FALSE;
		given = PyTuple_GET_ITEM(tensors, next++);
		if (!PyObject_TypeCheck(given, &tensor_type) ||
		    !tensor_same_layout(self->nodes[i].value, (struct tensor *)given))
			Py_RETURN_FALSE;
	}
	return PyBool_FromLong(next == PyTuple_GET_SIZE(tensors));
}

/* replay(tensors): runs the program again with other inputs; matches() must hold */
static PyObject *trace_replay(PyObject *obj, PyObject *tensors)
{
	struct trace *self = (struct trace *)obj;
	Py_ssize_t next = 0;

	for (Py_ssize_t i = 0; i < self->count; i++) {
		struct node *node = &self->nodes[i];
		struct tensor *value;

		if (node->op) {
			struct tensor *operands[OP_MAX_ARITY];
			struct rule *rule;

			trace_operands(self, node, operands);
			rule = executor_rule(self->executor, node->op, operands[0]->dtype);
			value = rule ? rule_forward(rule, operands) : NULL;
			if (!value)
				return NULL;
		} else {
			value = (struct tensor *)Py_NewRef(PyTuple_GET_ITEM(tensors, next++));
		}
		Py_SETREF(node->value, value);
	}
	Py_RETURN_NONE;
}

/* results() -> tuple of what the program returned */
static PyObject *trace_results(PyObject *obj, PyObject *unused)
{
	struct trace *self = (struct trace *)obj;
	PyObject *results = PyTuple_New(self->output_count);

	(void)unused;
	for (Py_ssize_t i = 0; results && i < self->output_count; i++)
		PyTuple_SET_ITEM(results, i, Py_NewRef(self->nodes[self->outputs[i]].value));
	return results;
}

/* Adds a cotangent to the one collected so far for a value. Takes the reference. */
static int gradients_add(PyObject *gradients, struct executor *executor, PyObject *name,
			 struct tensor *cotangent)
{
	PyObject *known = PyDict_GetItemWithError(gradients, name);
	int r;

	if (!known && PyErr_Occurred()) {
		Py_DECREF(cotangent);
		return -1;
	}
	if (known) {
		struct tensor *total =
			executor_accumulate(executor, (struct tensor *)known, cotangent);

		Py_DECREF(cotangent);
		if (!total)
			return -1;
		cotangent = total;
	}
	r = PyDict_SetItem(gradients, name, (PyObject *)cotangent);
	Py_DECREF(cotangent);
	return r;
}

/* Hands the cotangent of one node on to its operands; new ready names go into `ready`. */
static int trace_pull(struct trace *self, struct node *node, PyObject *gradients, int *pending,
		      PyObject *ready)
{
	struct tensor *operands[OP_MAX_ARITY], *results[OP_MAX_ARITY];
	PyObject *cotangent = PyDict_GetItemWithError(gradients, node->name);
	int r = 0;

	if (!cotangent && PyErr_Occurred())
		return -1;
	if (cotangent) {
		struct rule *rule;

		trace_operands(self, node, operands);
		rule = executor_rule(self->executor, node->op, operands[0]->dtype);
		if (!rule)
			return -1;
		if (rule_pullback(rule, operands, node->value, (struct tensor *)cotangent,
				  results) < 0)
			return -1;
		for (int i = 0; i < node->op->arity; i++) {
			struct node *input = &self->nodes[node->inputs[i]];

			if (r == 0)
				r = gradients_add(gradients, self->executor, input->name,
						  results[i]);
			else
				Py_DECREF(results[i]);
		}
	}
	for (int i = 0; r == 0 && i < node->op->arity; i++) {
		Py_ssize_t input = node->inputs[i];

		if (--pending[input] == 0)
			r = PySet_Add(ready, self->nodes[input].name);
	}
	return r;
}

/*
 * Works off the nodes in waves: a wave is the set of values whose consumers are all
 * done, so those in one wave do not depend on each other.
 */
static int trace_run_waves(struct trace *self, PyObject *gradients, int *pending, PyObject *ready)
{
	while (PySet_GET_SIZE(ready) > 0) {
		PyObject *wave = PySet_New(ready);
		PyObject *names = wave ? PyObject_GetIter(wave) : NULL;
		PyObject *name;

		Py_XDECREF(wave);
		if (!names || PySet_Clear(ready) < 0) {
			Py_XDECREF(names);
			return -1;
		}
		while ((name = PyIter_Next(names))) {
			Py_ssize_t index = trace_lookup(self, name);
			int r = index < 0 ? -1 : 0;

			if (r == 0 && self->nodes[index].op)
				r = trace_pull(self, &self->nodes[index], gradients, pending,
					       ready);
			Py_DECREF(name);
			if (r < 0) {
				Py_DECREF(names);
				return -1;
			}
		}
		Py_DECREF(names);
		if (PyErr_Occurred())
			return -1;
	}
	return 0;
}

/* Fills the dictionary with the cotangents given for the outputs. */
static int trace_seed(const struct trace *self, PyObject *cotangents, PyObject *gradients)
{
	for (Py_ssize_t i = 0; i < self->output_count; i++) {
		const struct node *node = &self->nodes[self->outputs[i]];
		PyObject *cotangent = PyTuple_GET_ITEM(cotangents, i);

		if (!PyObject_TypeCheck(cotangent, &tensor_type) ||
		    !tensor_same_layout((struct tensor *)cotangent, node->value)) {
			PyErr_Format(PyExc_ValueError, "the cotangent of %U does not fit",
				     node->name);
			return -1;
		}
		if (PyDict_SetItem(gradients, node->name, cotangent) < 0)
			return -1;
	}
	return 0;
}

/* The gradients of the inputs, in their order; None for an input that was not used. */
static PyObject *trace_collect(const struct trace *self, PyObject *gradients)
{
	PyObject *list = PyList_New(0);

	for (Py_ssize_t i = 0; list && i < self->count; i++) {
		PyObject *found;

		if (self->nodes[i].op)
			continue;
		found = PyDict_GetItemWithError(gradients, self->nodes[i].name);
		if ((!found && PyErr_Occurred()) ||
		    PyList_Append(list, found ? found : Py_None) < 0)
			Py_CLEAR(list);
	}
	return list;
}

/* backward(cotangents) -> list of the gradients of the inputs */
static PyObject *trace_backward(PyObject *obj, PyObject *cotangents)
{
	struct trace *self = (struct trace *)obj;
	PyObject *gradients = NULL, *ready = NULL, *result = NULL;
	int *pending = NULL;

	if (!PyTuple_Check(cotangents) || PyTuple_GET_SIZE(cotangents) != self->output_count) {
		PyErr_Format(PyExc_TypeError, "a tuple of %zd cotangents is wanted",
			     self->output_count);
		return NULL;
	}
	gradients = PyDict_New();
	ready = PySet_New(NULL);
	pending = PyMem_RawCalloc((size_t)self->count + 1, sizeof(*pending));
	if (!gradients || !ready || !pending) {
		if (!PyErr_Occurred())
			PyErr_NoMemory();
		goto out;
	}
	if (trace_seed(self, cotangents, gradients) < 0)
		goto out;
	for (Py_ssize_t i = 0; i < self->count; i++) {
		pending[i] = self->nodes[i].consumers;
		if (pending[i] == 0 && PySet_Add(ready, self->nodes[i].name) < 0)
			goto out;
	}
	if (trace_run_waves(self, gradients, pending, ready) == 0)
		result = trace_collect(self, gradients);
out:
	PyMem_RawFree(pending);
	Py_XDECREF(ready);
	Py_XDECREF(gradients);
	return result;
}

static PyObject *trace_get_batched(PyObject *obj, void *closure)
{
	(void)closure;
	return PyBool_FromLong(((struct trace *)obj)->batched != NULL);
}

static PyObject *trace_repr(PyObject *obj)
{
	struct trace *self = (struct trace *)obj;

	return PyUnicode_FromFormat("<Trace of %zd values on %U>", self->count,
				    self->executor->name);
}

static Py_ssize_t trace_length(PyObject *obj)
{
	return ((struct trace *)obj)->count;
}

static PyMethodDef trace_methods[] = {
	{ "input", trace_input, METH_O, "Adds an input; returns its name." },
	{ "apply", (PyCFunction)(void (*)(void))trace_apply, METH_FASTCALL,
	  "Runs and records an operation; returns the name of its result." },
	{ "returns", (PyCFunction)(void (*)(void))trace_returns, METH_FASTCALL,
	  "Declares what the program returns." },
	{ "matches", trace_matches, METH_O, "Whether it was recorded for such inputs." },
	{ "replay", trace_replay, METH_O, "Runs the program again with other inputs." },
	{ "results", trace_results, METH_NOARGS, "What the program returned." },
	{ "backward", trace_backward, METH_O, "Gradients of the inputs for given cotangents." },
	{ NULL },
};

static PyGetSetDef trace_getset[] = {
	{ "batched", trace_get_batched, NULL, "Whether an operation has a batch dimension.", NULL },
	{ NULL },
};

static PySequenceMethods trace_sequence = {
	.sq_length = trace_length,
};

PyTypeObject trace_type = {
	.ob_base = { PyObject_HEAD_INIT(NULL) 0 },
	.tp_name = "_thunder.Trace",
	.tp_doc = "A recorded program of tensor operations.",
	.tp_basicsize = sizeof(struct trace),
	.tp_flags = Py_TPFLAGS_DEFAULT,
	.tp_new = trace_construct,
	.tp_dealloc = trace_dealloc,
	.tp_repr = trace_repr,
	.tp_as_sequence = &trace_sequence,
	.tp_methods = trace_methods,
	.tp_getset = trace_getset,
};
