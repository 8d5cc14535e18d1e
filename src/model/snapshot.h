#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * What a crash or a hit left behind: one thread's registers, a slice of its stack, further pieces
 * of memory, and the process's mappings.
 *
 * A snapshot owns nothing: every pointer in it belongs to whoever filled it in (normally the
 * mapped event log) and must stay valid while the snapshot is used. All of it came out of a
 * process with damaged memory: any value in it may be a lie.
 */

typedef uint64_t taddr; /* an address in the target */

/* Registers by number; arch/arch.h names them and says which number is what. */
#define REGISTERS_MAX 32

struct registers {
	uint64_t value[REGISTERS_MAX];
	uint32_t known; /* bit N: value[N] was recorded or recovered */
};

/* Bytes as they stood in the target. */
struct piece {
	taddr address;
	const uint8_t *bytes;
	size_t len;
};

enum mapping_perms {
	MAPPING_READ = 1 << 0,
	MAPPING_WRITE = 1 << 1,
	MAPPING_EXEC = 1 << 2,
	MAPPING_SHARED = 1 << 3,
};

#define BUILD_ID_MAX 32

/* One line of /proc/PID/maps, or the text of one loaded module where only modules were recorded. */
struct mapping {
	taddr start;
	taddr end;	      /* first address after it */
	uint64_t file_offset; /* of `start` */
	uint64_t file_size;   /* when it was recorded; 0 when unknown */
	const char *path;     /* as in maps, "[stack]" and " (deleted)" too; NULL for none */
	unsigned int perms;   /* enum mapping_perms */
	bool bias_known;      /* `bias` below was recorded; `file_offset` is not needed then */
	uint64_t bias;	      /* address in the process - address in the ELF file */
	uint8_t build_id[BUILD_ID_MAX];
	size_t build_id_len; /* 0 when unknown */
};

/* Memory that has the path of a file without being one: of memfd_create(), of mmap() with
 * MAP_SHARED and MAP_ANONYMOUS, of shmget(). */
bool mapping_is_shared_memory(const struct mapping *mapping);

struct snapshot {
	int pid;
	int tid; /* as the kernel numbers threads; 0 when unknown */
	/* Wall clock: since when it is that process, and by when it was gone. What others with its
	 * number left behind is older or newer. 0 when unknown. */
	uint64_t since_ns, until_ns;
	/* Where names of code that it emitted lie, if they came with its log (perf-PID.map,
	 * jit-PID.dump); NULL: where it wrote them. */
	const char *names_dir;
	uint32_t user; /* whose process it is: user id + 1; 0 when unknown, then redhand's user */
	struct registers registers;
	struct piece stack;	    /* the bytes from about the stack pointer upwards */
	const struct piece *pieces; /* code, memory behind registers, Python's objects, …; any
				     * order; where two overlap, the first one counts */
	size_t piece_count;
	const struct mapping *mappings; /* ascending by start */
	size_t mapping_count;
	/* CPython's _PyRuntime and the value of Py_Version, when the recorder looked them up; 0:
	 * they are looked for in files called python… or libpython…. */
	taddr python_runtime;
	uint64_t python_version;
	const taddr *entered; /* functions whose start a hook of the recorder stands at */
	size_t entered_count;
	/* A place in the function whose return a hook of the recorder saw, and where its frame
	 * ended; 0 when there is none. */
	taddr left, left_end;
};

/* Reads from the stack slice and the pieces; one read may go over several of them. True only when
 * all bytes were recorded. */
bool snapshot_read(const struct snapshot *snapshot, taddr address, void *buf, size_t len);

/* The mapping that holds the address, or NULL. Mappings out of order are tolerated. */
const struct mapping *snapshot_mapping(const struct snapshot *snapshot, taddr address);
