#include "agent/core/thread.h"

__thread struct thread *thread_self __attribute__((tls_model("initial-exec")));
struct thread thread_nobody;
__thread struct thread *thread_hot __attribute__((tls_model("initial-exec"))) = &thread_nobody;
