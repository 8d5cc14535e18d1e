#include "agent/hooks/hook_sites.h"

struct hooked_state hooked;
