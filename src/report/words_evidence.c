/*
 * Sentences about pieces of evidence (model/evidence_said.c), one each. See wording.h.
 */
#include "report/wording.h"

/* clang-format off */
const struct sentence_row words_evidence_rows[] = {
	{ "noted", "[{0}; ]{1}" },
	{ "block", "the {0?freed|live} block of {1} bytes[ ({2})]" },
	{ "a-block", "a block" },
	{ "evidence:crash", "{0}[, in {1}]" },
	{ "evidence:write", "a write {0?of {1?up to }{0} byte{0:s} ({2}) }to {3}[, {4}][, by {5}]{6?; the last one before the failure}{7?; imprecise, the instruction is not the writer's}" },
	{ "evidence:watch", "{0} was watched ({1?{1}|how is unknown}{2?, since its birth}{3?, system calls included}), {4} writes by {5} thread{5:s}{6?|; the block that failed was another}" },
	{ "between:call", "{0?{0}|a system call} [from descriptor {1} ]put {2} bytes at {3:x}, thread {4}[, called from {5}]" },
	{ "between:more-calls", "{0} more system calls that filled it" },
	{ "between:private", "it lies in memory of this process alone" },
	{ "between:mapping", "it lies in {0}[: {1} at offset {2:x}]" },
	{ "mapping:shared-memory", "shared memory" },
	{ "mapping:device", "a device's memory" },
	{ "mapping:file", "a shared mapping of a file" },
	{ "between:again", "this process has it mapped for writing at {0:x}, too" },
	{ "between:nobody", "when it was found changed, no other process that could be looked at had it mapped for writing" },
	{ "between:others", "mapped for writing by process {1*, }[ and {0} more]" },
	{ "between:process", "{0} ({1})" },
	{ "evidence:outside", "{0} changed {1} and no write was caught{2? (the watch was off for some of the time)}{3?; in between: {3*, }}" },
	{ "evidence:conflation", "at one address, offset {0}, two blocks: #{1} had {2:x}, #{3} has {4:x}{5?; no write turned the one into the other}" },
	{ "evidence:freed-use", "{0} was {1?written|read} at offset {2}[ by {3}][; allocated by {4}][; freed by {5}][, at most {6} allocations and frees ago]" },
	{ "evidence:over-read", "{0} was read {1} bytes {2?before its start|behind its end}[ by {3}][; allocated by {4}]" },
	{ "returned-frame", "a variable of {0}, which had returned" },
	{ "freed-target", "{0}[, freed by {1}]" },
	{ "evidence:holder", "{0} still pointed to {1}[; the pointer was put there by {2}]; {3?the failing instruction used it|nobody used it}" },
	{ "freed:twice", "a block was freed twice" },
	{ "freed:interior", "a pointer into the middle of a block was freed" },
	{ "freed:mismatched", "a block was freed by the wrong function" },
	{ "freed:foreign", "a pointer to no block was freed" },
	{ "freed:object", "an object was released twice" },
	{ "evidence:bad-free", "{0}[ ({1})][ by {2}][; first by {3}][; allocated by {4}]" },
	{ "side:before", "before the start of" },
	{ "side:after", "behind the end of" },
	{ "side:inside", "inside" },
	{ "evidence:canary", "{0} damaged byte{0:s} {1} {2}, from offset {3}[; whole at '{4}', broken at '{5}'][, written by {6}]" },
	{ "evidence:mapping", "{0?{0}|a file} was mapped with {1} bytes and has {2} now[; process {3} of trial {4} made it shorter with {5?{5}|an unknown call}][ in {6}]" },
	{ "evidence:odds", "{8?its result or output differed |it failed }{0?in another way }in {1} of {2} trials in which {3}, held garbage when it was allocated, and in {4} of {5} in which it held zeros (p = {6:.2g})[; allocated by {7}]" },
	{ "evidence:fault-value", "the {0?divisor|pointer} was {1:x}[, read from {2}]{3?, returned by {4?{4}|a call}}{5?, an argument of the function}" },
	{ "evidence:account", "references in {0}{1?: {1*; }}" },
	{ "reference-party", "{0} acquired {1} and released {2}" },
	{ "evidence:growth", "{0:.1f} blocks, {1:.0f} bytes more per test[, allocated by {2}]; in {3} of {4} trials, after {5} of {6} tests[; held by {7}]" },
	{ "evidence:race", "two threads wrote {0} within {1:.3f} µs[: {2}][ and {3}]{4?; the second was made from a value already replaced}{5?; both held a lock}" },
	{ "evidence:host", "signs of the machine: {0} single flipped bits without a writer in {1} places, signals SEGV {2}, BUS {3}, ILL {4} in {5} functions[, failures on core {6} (p = {7:.3g})][, failures on the machine '{10}' (p = {11:.3g})][, memory test of {8:.1f} s: {9} errors]" },
	{ "evidence:no-failure", "none of {0} trials failed" },
	{ "evidence:failure", "{0?{0}|a failure}: in {1} of {2} trials{3?, every one that got that far}" },
	{ "evidence:experiment", "{0}: {1} trials, of which {2} could show it; {3?something was seen in {4} of these and {5} others|nothing was seen}" },
	{ "evidence:hop", "step {0} back: {1}: caught in {2} of {3} failing trials in which the damaged memory was watched, {4} trials run[; the damaged block was found again in {5} of {6} failing trials][; {7}]" },
	{ "evidence:reported", "{0?{0}|a tool} reported {1}[, a {2?write|read} of {3} byte{3:s}], by {4}[, at offset {5} of a {6?freed }{7?variable {7}|block} of {8} bytes][, freed by {9}][, allocated by {10}]" },

	{ "experiment:run", "plain runs" },
	{ "experiment:crash-record", "the crash's own record" },
	{ "experiment:watch", "watchpoints" },
	{ "experiment:guards", "guards around blocks" },
	{ "experiment:fill-freed", "random contents of freed blocks" },
	{ "experiment:fill-fresh", "random contents of new blocks" },
	{ "experiment:race", "a look at all threads" },
	{ "experiment:growth", "a count of blocks from test to test" },
	{ "experiment:fences", "fences behind blocks" },
	{ "experiment:machine", "a test of the machine" },
	{ "experiment:unknown", "an experiment" },
};
/* clang-format on */

const size_t words_evidence_count = ARRAY_SIZE(words_evidence_rows);

const char *words_experiment(enum experiment_kind kind)
{
	return words_named("experiment", experiment_name(kind));
}
