/* local.h: private to run/cuda/. */
#ifndef RUN_CUDA_LOCAL_H
#define RUN_CUDA_LOCAL_H

#include "run/cuda/cuda.h"
#include "run/store.h"

/* ---- what the two libraries declare: own words for it ------------------ */

typedef int cu_result, cu_device, rtc_result;
typedef unsigned long long cu_address;
typedef struct cu_context_ *cu_context;
typedef struct cu_stream_ *cu_stream;
typedef struct cu_event_ *cu_event;
typedef struct cu_module_ *cu_module;
typedef struct cu_function_ *cu_function;
typedef struct cu_graph_ *cu_graph;
typedef struct cu_exec_ *cu_exec; /* a graph that can be launched */
typedef struct cu_node_ *cu_node;
typedef struct cu_link_ *cu_link; /* what is being linked */
typedef struct cu_update_result {
	int result;
	void *node, *from; /* where it failed */
} cu_update_result;
typedef struct rtc_program_ *rtc_program;
typedef struct cu_rows { /* a copy of rows: from the first half to the second */
	struct cu_rows_end {
		size_t x, y;
		int type; /* CU_OF_DEVICE */
		void *host;
		cu_address at;
		void *array;
		size_t step;
	} from, to;
	size_t n, rows;
} cu_rows;

/* A matrix, in words of the driver. */
enum { CU_MAP_WORDS = 16 };
typedef struct cu_map {
	_Alignas(64) uint64_t word[CU_MAP_WORDS];
} cu_map;
_Static_assert(sizeof(cu_map) == 128, "as cuda.h has it");

/* Nodes of graphs. */
typedef struct cu_node_launch {
	cu_function fn;
	unsigned blocks[3], threads[3], shared_bytes;
	void **param, **extra;
	void *kernel; /* instead of fn */
	cu_context context;
} cu_node_launch;
typedef struct cu_node_copy {
	int flags, unused;
	cu_context context;
	struct cu_node_copy_end {
		size_t x, y, z, lod;
		int type; /* CU_OF_DEVICE */
		void *host;
		cu_address at;
		void *array, *unused;
		size_t step, height;
	} from, to;
	size_t n, rows, planes;
} cu_node_copy;
typedef struct cu_node_fill {
	cu_address at;
	size_t step;
	unsigned value, size; /* size: bytes of an element */
	size_t n, rows;
	cu_context context;
} cu_node_fill;
typedef struct cu_node_cond {
	uint64_t handle;
	int type; /* CU_IF, CU_WHILE */
	unsigned n;
	cu_graph *body; /* [n], set by the driver */
	cu_context context;
} cu_node_cond;
typedef struct cu_node_params {
	int type;
	int unused[3];
	union {
		int64_t words[29];
		cu_node_launch launch;
		cu_node_copy copy;
		cu_node_fill fill;
		cu_node_cond cond;
	} u;
	int64_t unused_too;
} cu_node_params;
_Static_assert(sizeof(cu_node_params) == 256 &&
	offsetof(cu_node_params, u) == 16, "as cuda.h has it");
_Static_assert(sizeof(cu_node_launch) == 72 &&
	offsetof(cu_node_launch, param) == 40, "as cuda.h has it");
_Static_assert(sizeof(cu_node_copy) == 216 &&
	offsetof(cu_node_copy, from.at) == 16 + 48 &&
	offsetof(cu_node_copy, to.type) == 16 + 120 &&
	offsetof(cu_node_copy, n) == 16 + 176, "as cuda.h has it");
_Static_assert(sizeof(cu_node_fill) == 48 &&
	offsetof(cu_node_fill, n) == 24, "as cuda.h has it");
_Static_assert(sizeof(cu_node_cond) == 32 &&
	offsetof(cu_node_cond, body) == 16, "as cuda.h has it");

typedef int nccl_result;
typedef struct nccl_comm_ *nccl_comm;
typedef struct nccl_id {
	char bytes[RUN_PEERS_ID];
} nccl_id;
typedef struct nccl_config { /* as of NCCL 2.14: later ones have more */
	size_t size;
	unsigned magic, version;
	int waits; /* 0: calls return NCCL_GOES_ON where they would wait */
} nccl_config;

/* Numbers of the driver's interface. */
enum {
	CU_OK = 0,
	CU_INVALID = 1, /* an argument */
	CU_NO_MEMORY = 2,
	CU_NO_DEVICE = 100,
	CU_NOT_READY = 600,
	CU_UNITS = 16, /* attributes of a device */
	CU_UNIT_THREADS = 39,
	CU_MAJOR = 75,
	CU_MINOR = 76,
	CU_SHARED_BYTES = 8, /* attribute of a function */
	CU_OWN_STREAM = 1, /* a stream that does not wait for the default one */
	CU_NO_TIMES = 2,   /* an event that only tells that something is done */
	CU_RELAXED = 2,	   /* other threads may call what they like meanwhile */
	CU_OF_DEVICE = 2,  /* kind of memory */
	CU_NODE_LAUNCH = 0, /* kinds of nodes */
	CU_NODE_COPY = 1,
	CU_NODE_FILL = 2,
	CU_NODE_COND = 13,
	CU_TWO_BYTES = 1, /* elements of a matrix */
	CU_SWIZZLE_128 = 3,
	CU_READ_256 = 3, /* bytes */
	CU_IF = 0, /* kinds of conditions */
	CU_WHILE = 1,
	CU_AT_LAUNCH = 1, /* a handle that has its value again at each launch */
	CU_LINK_CUBIN = 0, /* what is linked */
	CU_LINK_PTX = 1,
	CU_LINK_LIBRARY = 4,
	CU_LINK_LOG = 5, /* options: text of errors, and its room */
	CU_LINK_LOG_BYTES = 6
};

/* .. and of NCCL's. */
enum {
	NCCL_OK = 0,
	NCCL_GOES_ON = 7,
	NCCL_BYTES = 0, /* the dtype */
	NCCL_CONFIG_VERSION = 21400
};
#define NCCL_CONFIG_MAGIC 0xcafebeefu

typedef struct cu_library {
	void *handle;
	const char *path; /* as it was asked for */
	int version_number; /* 12040 */
#define CU(name, symbol, params) cu_result (*name) params;
#include "run/cuda/driver.def"
#include "run/cuda/driver_more.def"
#undef CU
	const char *lacks; /* the first function of driver_more.def; or NULL */
} cu_library;

typedef struct rtc_library {
	void *handle;
	const char *path;
	int version_number; /* 13000 */
#define RTC(name, symbol, params) rtc_result (*name) params;
#include "run/cuda/nvrtc.def"
#undef RTC
} rtc_library;

typedef struct nccl_library {
	void *handle;
	const char *path;
	int version_number; /* 22809: 2.28.9 */
#define NCCL(result, name, symbol, params) result (*name) params;
#include "run/cuda/nccl.def"
#undef NCCL
} nccl_library;

/* ---- load.c ------------------------------------------------------------ */

/* Both throw as cuda_open. The libraries stay loaded until the process ends:
 * they have threads and handlers of their own. */
void cuda_load_driver(cu_library *l, arena *a);
void cuda_load_nvrtc(rtc_library *l, arena *a, int driver_version);
/* Throws TN_EINVAL [cuda.nccl] */
void cuda_load_nccl(nccl_library *l, arena *a);
/* 22809 as "2.28.9" */
const char *cuda_nccl_version(arena *a, int version);
/* The library that is linked to kernels that set conditions; *why: why there is
 * none, or why the driver has no conditions. */
const char *cuda_find_devrt(const cu_library *l, const rtc_library *rtc, arena *a,
	const char **why);
/* "CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected" */
const char *cuda_error(const cu_library *l, arena *a, cu_result r);

/* ---- memory.c ---------------------------------------------------------- */

typedef struct cuda_block cuda_block;
typedef struct cuda_memory {
	cuda_block *first; /* of the segments, in no order */
	cuda_block *spare; /* nodes without memory */
	size_t in_use, reserved;
} cuda_memory;

/* ---- device.c ---------------------------------------------------------- */

enum {
	CUDA_SLOTS = 16,	     /* of the staging memory */
	CUDA_SLOT_BYTES = 512 << 10 /* of one */
};

typedef struct cuda_device {
	run_device base;
	arena *a;
	cu_library l;
	rtc_library rtc;
	cu_device id;
	int32_t compute, n_units;
	char name[96];
	cu_context context; /* NULL: not asked for yet */
	cu_stream stream;
	char *stage; /* CUDA_SLOTS slots of memory that the device can read */
	cu_event idle[CUDA_SLOTS]; /* the last copy of the slot is done */
	int32_t slot;		   /* the next one */
	cu_event order; /* between the stream and those of others */
	struct cuda_group *group; /* nccl.c; NULL: not used */
	cuda_memory memory;
	/* names of the launches since the last wait */
	char first_launch[128], last_launch[128];
	int64_t n_launched;
	int64_t n_all, n_graphs; /* since the beginning */
	VEC(void *) args; /* of a launch */
	VEC(uint64_t) map; /* of it: CU_MAP_WORDS each */
	run_lists *noting; /* graph.c: what is called is noted; or NULL */
	VEC(uint64_t) word; /* the notes */
	int32_t n_notes, n_lists; /* n_lists: of the current run, so far */
	int32_t n_repeats, depth; /* n_repeats: among the notes; depth: open ones */
	struct cuda_again *again; /* again.c; NULL: not asked for yet */
	const char *lost; /* why it can no longer be used; or NULL */
	store s;
	map *units; /* key -> index in unit */
	VEC(struct cuda_unit *) unit;
	run_stats stats;
} cuda_device;

/* ---- current.c --------------------------------------------------------- */

/* The device is the thread's current one from enter to leave; enter throws if it
 * is lost, and asks for the context at the first time. */
void cuda_enter(cuda_device *d);
void cuda_leave(cuda_device *d);
/* After a call between enter and leave: leaves and throws if it failed. which:
 * what the call was about; or "" */
void cuda_check(
	cuda_device *d, cu_result r, const char *what, const char *which);
/* Notes that the device is lost, if r says so. */
bool cuda_note_lost(cuda_device *d, cu_result r);
void cuda_end(cuda_device *d); /* returns stream, events and staging memory */

/* ---- stream.c ---------------------------------------------------------- */

void *cuda_stream(run_device *d);
void cuda_follow(run_device *d, void *stream);
void cuda_lead(run_device *d, void *stream);

/* ---- memory.c ---------------------------------------------------------- */

void *cuda_memory_alloc(run_device *d, arena *a, size_t n);
void cuda_memory_end(cuda_device *d);

/* ---- graph.c ----------------------------------------------------------- */

typedef struct cuda_grid {
	cu_function fn;
	uint32_t blocks, threads, shared_bytes;
	int32_t n_params;
	void *const *param; /* addresses of values of 8 bytes */
	int32_t n_maps;
	const uint64_t *map; /* what follows them, CU_MAP_WORDS each */
} cuda_grid;

/* Between begin and finish: notes it. */
void cuda_note_launch(cuda_device *d, const cuda_grid *g);
void cuda_note_copy(cuda_device *d, cu_address to, cu_address from, size_t n);
void cuda_note_fill(cuda_device *d, cu_address to, int byte, size_t n);
/* From repeat to repeated: notes that it happens as long as a condition holds. */
void cuda_repeat(run_device *d, const run_repeat *r);
void cuda_repeated(run_device *d);
/* What was noted happens, before something that the host waits for. */
void cuda_flush(cuda_device *d);
void cuda_begin(run_device *d, arena *a, run_lists **lists);
void cuda_start(run_device *d);
void cuda_finish(run_device *d);
void cuda_cancel(run_device *d);

/* A note is a few words: its kind, then what it has. */
enum {
	CUDA_LAUNCH, /* function, blocks, threads, shared bytes, n, m, n params, m maps */
	CUDA_COPY,   /* to, from, bytes */
	CUDA_FILL,   /* at, byte, bytes */
	CUDA_REPEAT, /* test, its bytes, state, most */
	CUDA_REPEATED,
	CUDA_LAUNCH_WORDS = 7,
	CUDA_COPY_WORDS = 4,
	CUDA_REPEAT_WORDS = 5
};

/* ---- cond.c ------------------------------------------------------------ */

int32_t cuda_note_words(const uint64_t *w);

/* The addresses of its params are d->args then, which has room for them. */
void cuda_launch_args(cuda_device *d, const uint64_t *w);
/* A graph of n words of notes, with conditions as nodes. d->args has room for the
 * params of each launch. Between enter and leave; *g NULL if it failed. */
cu_result cuda_build(cuda_device *d, const uint64_t *word, int32_t n, cu_graph *g);

/* ---- again.c ----------------------------------------------------------- */

typedef struct cuda_again {
	const char *why; /* there are none; or NULL */
	cu_module module;
	cu_function set, watch;
} cuda_again;
const char *cuda_no_repeat(run_device *d);
void cuda_watch(run_device *d, const void *err, int32_t n, int64_t *state);
void cuda_again_end(cuda_device *d);

/* ---- nccl.c ------------------------------------------------------------ */

extern const run_peers cuda_peers;
/* Before the host waits for the device: waits until what other processes send has
 * arrived; throws if one of them is gone. Not between enter and leave. */
void cuda_await_peers(cuda_device *d);
void cuda_peers_end(cuda_device *d);

/* ---- module.c ---------------------------------------------------------- */

void cuda_modules_open(cuda_device *d, const char *cache_dir);
void cuda_load(
	run_device *d, const char *const *text, int32_t n, void **unit);
void *cuda_find(run_device *d, void *unit, const char *name);
/* The option of the compiler that names the newest GPU that it knows, up to the
 * device; own: with instructions that no other kind has; *is_ptx: an older one, for
 * which it makes PTX. */
const char *cuda_arch(cuda_device *d, bool own, bool *is_ptx);
void cuda_modules_end(cuda_device *d);

#endif
