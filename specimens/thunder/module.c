#include "trace.h"

PyMODINIT_FUNC PyInit__thunder(void);

static PyObject *module_executor(PyObject *module, PyObject *name)
{
	PyObject *found;

	(void)module;
	if (!PyUnicode_Check(name)) {
		PyErr_SetString(PyExc_TypeError, "an executor is named by a string");
		return NULL;
	}
	found = executor_named(name);
	return found ? Py_NewRef(found) : NULL;
}

static PyObject *module_operations(PyObject *module, PyObject *unused)
{
	PyObject *names = PyTuple_New(OP_COUNT);

	(void)module;
	(void)unused;
	for (int i = 0; names && i < OP_COUNT; i++) {
		PyObject *name = PyUnicode_FromString(op_name((enum op_id)i));

		if (name)
			PyTuple_SET_ITEM(names, i, name);
		else
			Py_CLEAR(names);
	}
	return names;
}

static PyMethodDef module_methods[] = {
	{ "executor", module_executor, METH_O, "The executor of that name." },
	{ "operations", module_operations, METH_NOARGS, "The names of all operations." },
	{ NULL },
};

static struct PyModuleDef module_def = {
	PyModuleDef_HEAD_INIT,
	.m_name = "_thunder",
	.m_doc = "Tensors, traces and gradients.",
	.m_size = -1,
	.m_methods = module_methods,
};

PyMODINIT_FUNC PyInit__thunder(void)
{
	PyObject *module = PyModule_Create(&module_def);

	if (!module)
		return NULL;
	if (PyType_Ready(&rule_type) < 0 || PyModule_AddType(module, &tensor_type) < 0 ||
	    PyModule_AddType(module, &executor_type) < 0 ||
	    PyModule_AddType(module, &trace_type) < 0)
		Py_CLEAR(module);
	return module;
}
