/*
 * How many debug registers the CPU has.
 */
#pragma once

#define WATCH_REGISTERS 4u
