#include "agent/core/thread.h"

struct thread thread_nobody;
