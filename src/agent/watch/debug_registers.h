/*
 * How many debug registers the CPU has.
 */
#ifndef REDHAND_AGENT_DEBUG_REGISTERS_H
#define REDHAND_AGENT_DEBUG_REGISTERS_H

#define WATCH_REGISTERS 4u

#endif
