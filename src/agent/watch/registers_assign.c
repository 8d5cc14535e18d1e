#include "agent/watch/registers_assign.h"

#include <errno.h>

#include "agent/arch/x86_64.h"
#include "agent/core/invariant.h"
#include "agent/core/memory.h"
#include "agent/core/spin.h"

#define LOCK_SPINS 20000u
#define PIECE_BYTES_MAX 8u
#define OWNER_NONE WATCH_ARMED_MAX

static uint32_t lock; /* atomic */
static struct aim aims[WATCH_REGISTERS];
static bool unsure; /* the tracer was killed while a register was being aimed */

#if AGENT_CHECKS
static const char *registers_invariant_sigsafe(void)
{
	unsigned i;

	for (i = 0; i < WATCH_REGISTERS; i++) {
		const struct aim *aim = &aims[i];

		if (aim->bytes > PIECE_BYTES_MAX || aim->bytes & (aim->bytes - 1))
			return "registers: aimed at a length that the CPU does not have";
		if (aim->bytes && aim->address % aim->bytes)
			return "registers: aimed at an address that is not aligned";
		if (aim->owner > OWNER_NONE)
			return "registers: owned by an object that cannot be";
	}
	return NULL;
}
#endif

bool registers_lock(void)
{
	if (!spin_take_sigsafe(&lock, LOCK_SPINS))
		return false;
	INVARIANT(registers_invariant_sigsafe());
	return true;
}

void registers_unlock(void)
{
	INVARIANT(registers_invariant_sigsafe());
	spin_give_sigsafe(&lock);
}

unsigned registers_cut(uint64_t address, uint32_t bytes, struct aim pieces[WATCH_REGISTERS])
{
	unsigned count = 0;

	while (bytes && count < WATCH_REGISTERS) {
		uint32_t piece = PIECE_BYTES_MAX;

		while (piece > bytes || address % piece)
			piece /= 2;
		pieces[count++] = (struct aim){ .address = address, .bytes = piece };
		address += piece;
		bytes -= piece;
	}
	return count;
}

static bool register_free(unsigned n)
{
	const struct aim *aim = &aims[n];

	return !aim->bytes || aim->owner == OWNER_NONE || !watch_state.armed[aim->owner].number;
}

void registers_disown(uint32_t owner)
{
	unsigned i;

	for (i = 0; i < WATCH_REGISTERS; i++)
		if (aims[i].owner == owner)
			aims[i].owner = OWNER_NONE;
}

unsigned registers_free(void)
{
	unsigned i, count = 0;

	for (i = 0; i < WATCH_REGISTERS; i++)
		count += register_free(i);
	return count;
}

/* Where somebody is arming right now, the register is left to him. */
void watch_retire_register_sigsafe(unsigned n, uint64_t address)
{
	uint32_t none = 0;

	if (n >= WATCH_REGISTERS)
		return;
	if (!__atomic_compare_exchange_n(&lock, &none, 1, false, __ATOMIC_ACQUIRE,
					 __ATOMIC_RELAXED))
		return;
	if (register_free(n) && aims[n].address == address && !watch_registers_park_sigsafe(n)) {
		aims[n].bytes = 0;
		aims[n].address = 0;
	}
	registers_unlock();
}

bool watch_register_lingers_sigsafe(void)
{
	unsigned i;

	for (i = 0; i < WATCH_REGISTERS; i++)
		if (register_free(i) && aims[i].bytes)
			return true;
	return unsure;
}

/* A register for this piece, best the one that is aimed there already. */
static unsigned register_choose(const struct aim *piece, unsigned taken)
{
	unsigned i, best = WATCH_REGISTERS;

	for (i = 0; i < WATCH_REGISTERS; i++) {
		if ((taken & 1u << i) || !register_free(i))
			continue;
		if (aims[i].address == piece->address && aims[i].bytes == piece->bytes)
			return i;
		if (best == WATCH_REGISTERS)
			best = i;
	}
	return best;
}

int registers_set(uint32_t owner, const struct aim *pieces, unsigned count)
{
	unsigned i, n, taken = 0, chosen[WATCH_REGISTERS];
	int trouble;

	for (i = 0; i < count; i++) {
		chosen[i] = register_choose(&pieces[i], taken);
		if (chosen[i] == WATCH_REGISTERS)
			return ENOSPC;
		taken |= 1u << chosen[i];
	}
	for (i = 0; i < count; i++) {
		struct aim *aim = &aims[chosen[i]];

		n = chosen[i];
		if (aim->address != pieces[i].address || aim->bytes != pieces[i].bytes) {
			trouble = watch_registers_aim_sigsafe(n, pieces[i].address, pieces[i].bytes,
							      n + 1);
			unsure |= trouble == ENOTCONN;
			if (trouble)
				return trouble;
		}
		*aim = pieces[i];
		aim->owner = owner;
	}
	return 0;
}

void registers_after_fork(void)
{
	unsigned i;

	for (i = 0; i < WATCH_REGISTERS; i++)
		if (aims[i].bytes)
			(void)watch_registers_aim_sigsafe(i, aims[i].address, aims[i].bytes, i + 1);
}
