/*
 * What a fault was (read/fault_class.c). See wording.h.
 */
#include "report/wording.h"

/* clang-format off */
const struct sentence_row words_faults[] = {
	{ "crash-block", "block {0} ({1} bytes{2?, freed{3? at most {3} allocations and frees ago}})" },
	{ "access:read", "a read of" },
	{ "access:write", "a write to" },
	{ "pointer:outside", ", with a pointer that was read {0} bytes {1?behind the end of|before} {2}" },
	{ "pointer:freed", ", with a pointer that was loaded from a freed block: {0}" },
	{ "pointer:recycled", ", with a pointer that was loaded from {0}, whose place belonged to {1} before" },
	{ "fault:near-null", "{0} NULL{1?-|+}{2:x}{3}" },
	{ "fault:poison", "used as a pointer what was read from a freed block: {0}" },
	{ "fault:freed", "{0} {1:x} in a freed block: {2}" },
	{ "fault:recycled", "{0} {1:x}, which belonged to {2} and has another owner now" },
	{ "fault:beyond", "{0} {1:x}, behind the end of {2}" },
	{ "fault:non-canonical", "{0?{1?a jump to }{0:x}, which|a pointer that} is no address at all (non-canonical){2}" },
	{ "fault:misaligned", "{0?{0:x}, which is not aligned as the instruction needs it (misaligned)|an instruction that needs an aligned address got another, or a protection fault of that kind}" },
	{ "fault:execute", "a jump to {0:x}{1? (NULL)}, where there is no code[ but {2?a freed block|data}: {3}]{4}" },
	{ "fault:stack-full", "the stack of thread '{0}' is full (stack overflow)" },
	{ "fault:shrank", "the mapped file {0} has shrunk, or never was so long: {1} bytes were mapped, {2} are there" },
	{ "fault:read-only", "a write to {0:x}, which may only be read" },
	{ "fault:unmapped", "{0} {1:x}, where nothing is mapped that allows it{2}" },
	{ "fault:own", "an access to redhand's own memory at {0:x}" },
	{ "fault:abort", "abort[: {0}]" },
	{ "fault:sent", "the signal was sent by process {0}{1?, itself}" },
	{ "fault:arithmetic", "an arithmetic error" },
	{ "fault:division-some", "a division by zero, or one whose result does not fit" },
	{ "fault:division-zero", "a division by zero" },
	{ "fault:division-range", "a division whose result does not fit" },
	{ "fault:privileged", "an instruction that programs may not use" },
	{ "fault:illegal", "an instruction that does not exist" },
	{ "fault:trap", "a trap instruction" },
	{ "fault:syscall", "system call {0} is forbidden" },
	{ "fault:unknown", "a fault of unknown kind" },
};
/* clang-format on */

const size_t words_faults_count = ARRAY_SIZE(words_faults);
