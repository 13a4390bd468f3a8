/* NVML's ABI without a card: the calls that we use, driven by a scenario file.
 *
 *   cc -shared -fPIC -Wl,-soname,libnvidia-ml.so.1 -o libnvidia-ml.so.1 nvml.c
 *
 * The file named by FAKE_NVML is read anew at each call: one "key value" a line.
 *   cards N             number of cards (default 1)
 *   temperature C, memory_temperature C, power MW, limit MW, load %, used BYTES, total BYTES,
 *   totalI BYTES (of card I alone), driver N (told as N.10), capability TENTHS (70 is 7.0),
 *   energy MJ (millijoules), clock MHZ, throttle BITS, ecc N, xid N (told once per change), links N
 *   pid PID, pid2 PID   processes on the card, each told while it lives
 *   held BYTES          what each of them adds to `used` (default 0)
 *   lost I              card I answers NVML_ERROR_GPU_IS_LOST
 *   handle CODE         a card cannot be had: CODE; until then (`heals`) and which (`broken_card`) as with `broken`
 *   NAME_code CODE      the query for one figure, such as temperature, answers CODE
 *   broken CODE         every sample call answers CODE (999: unknown), or does so until NVML was initialized
 *   broken_card I       only card I does so
 *   heals N             N times (0: never)
 *   unusable CODE       NVML cannot be initialized: CODE
 *   memory CODE         the query for memory answers CODE (0: a size of 0)
 *   hang S              every sample call sleeps S seconds first
 *   garbage BYTE        names and versions are this byte, which need not be text
 * A key that is absent answers NVML_ERROR_NOT_SUPPORTED. Without FAKE_NVML no driver is installed:
 * the library stays loaded in a process, also for tests that know nothing of it.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SUCCESS = 0, UNINITIALIZED = 1, INVALID = 2, NOT_SUPPORTED = 3, INSUFFICIENT_SIZE = 7, TIMEOUT = 10, NO_LIBRARY = 12, LOST = 15 };

typedef unsigned int uint;
typedef unsigned long long ull;

static char cards_memory[16];
static ull inits;
ull fake_inits(void) { return inits; }

static int look(const char *key, ull *value) {
    const char *path = getenv("FAKE_NVML");
    FILE *file = path ? fopen(path, "r") : NULL;
    char name[64];
    ull number;
    int found = 0;
    if (!file) return 0;
    while (fscanf(file, "%63s %llu", name, &number) == 2)
        if (!strcmp(name, key)) { *value = number; found = 1; }
    fclose(file);
    return found;
}

static uint card(void *device) { return (uint)((char *)device - cards_memory); }

static int fails(const char *how, uint index) {
    ull code, heals = 0, only = index;
    look("heals", &heals);
    look("broken_card", &only);
    return only == index && look(how, &code) && (!heals || inits < heals) ? (int)code : SUCCESS;
}

static int check(void *device) {
    ull value;
    if (!device) return INVALID;
    if (look("hang", &value)) sleep((uint)value);
    if (look("lost", &value) && value == card(device)) return LOST;
    return fails("broken", card(device));
}

static uint alive(uint *pids) {
    const char *keys[] = {"pid", "pid2"};
    uint count = 0;
    ull pid;
    for (int i = 0; i < 2; i++)
        if (look(keys[i], &pid) && !kill((pid_t)pid, 0)) pids[count++] = (uint)pid;
    return count;
}

static int give(void *device, const char *key, uint *out) {
    ull value;
    int state = check(device);
    char own[64];
    if (state) return state;
    snprintf(own, sizeof own, "%s_code", key);
    if (look(own, &value)) return (int)value;
    if (!look(key, &value)) return NOT_SUPPORTED;
    *out = (uint)value;
    return SUCCESS;
}

int nvmlInit_v2(void) {
    ull code;
    inits++;
    if (!getenv("FAKE_NVML")) return NO_LIBRARY;
    return look("unusable", &code) ? (int)code : SUCCESS;
}
int nvmlInitWithFlags(uint flags) { (void)flags; return nvmlInit_v2(); }
int nvmlShutdown(void) { return SUCCESS; }
const char *nvmlErrorString(int code) { (void)code; return "an error of the fake NVML"; }

int nvmlDeviceGetCount_v2(uint *count) {
    ull value = 1;
    look("cards", &value);
    *count = (uint)value;
    return SUCCESS;
}

int nvmlDeviceGetHandleByIndex_v2(uint index, void **device) {
    int state = fails("handle", index);
    *device = state ? NULL : cards_memory + index;
    return state;
}

int nvmlDeviceGetName(void *device, char *name, uint length) {
    ull byte;
    (void)device;
    snprintf(name, length, "Tesla V100-SXM2-16GB");
    if (look("garbage", &byte)) snprintf(name, length, "%c%c", (int)byte, (int)byte);
    return SUCCESS;
}

int nvmlSystemGetDriverVersion(char *version, uint length) {
    ull number;
    if (look("garbage", &number)) return snprintf(version, length, "%c", (int)number), SUCCESS;
    if (!look("driver", &number)) return NOT_SUPPORTED;
    snprintf(version, length, "%llu.10", number);
    return SUCCESS;
}

int nvmlDeviceGetCudaComputeCapability(void *device, int *major, int *minor) {
    uint tenths;
    int state = give(device, "capability", &tenths);
    if (state) return state;
    *major = (int)tenths / 10;
    *minor = (int)tenths % 10;
    return SUCCESS;
}

int nvmlDeviceGetTemperature(void *device, uint sensor, uint *celsius) { (void)sensor; return give(device, "temperature", celsius); }
int nvmlDeviceGetPowerUsage(void *device, uint *mw) { return give(device, "power", mw); }
int nvmlDeviceGetTotalEnergyConsumption(void *device, ull *mj) {
    int state = check(device);
    if (state) return state;
    return look("energy", mj) ? SUCCESS : NOT_SUPPORTED;
}
int nvmlDeviceGetEnforcedPowerLimit(void *device, uint *mw) { return give(device, "limit", mw); }
int nvmlDeviceGetClockInfo(void *device, uint kind, uint *mhz) { (void)kind; return give(device, "clock", mhz); }
int nvmlDeviceGetCurrPcieLinkGeneration(void *device, uint *generation) { (void)device; *generation = 3; return SUCCESS; }
int nvmlDeviceGetCurrPcieLinkWidth(void *device, uint *width) { (void)device; *width = 16; return SUCCESS; }

struct utilization { uint gpu, memory; };

int nvmlDeviceGetUtilizationRates(void *device, struct utilization *rates) {
    rates->memory = 0;
    return give(device, "load", &rates->gpu);
}

struct memory { ull total, free, used; };

int nvmlDeviceGetMemoryInfo(void *device, struct memory *memory) {
    int state = check(device);
    if (state) return state;
    ull code;
    if (look("memory", &code)) { memset(memory, 0, sizeof *memory); return (int)code; }
    char own[32];
    snprintf(own, sizeof own, "total%u", card(device));
    if (!look(own, &memory->total) && !look("total", &memory->total)) return NOT_SUPPORTED;
    if (!look("used", &memory->used)) return NOT_SUPPORTED;
    uint pids[2];
    ull held = 0;
    look("held", &held);
    memory->used += held * alive(pids);
    memory->free = memory->total - memory->used;
    return SUCCESS;
}

int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, ull *bits) {
    int state = check(device);
    if (state) return state;
    *bits = 0;
    look("throttle", bits);
    return SUCCESS;
}

int nvmlDeviceGetTotalEccErrors(void *device, uint type, uint counter, ull *count) {
    int state = check(device);
    (void)type; (void)counter;
    if (state) return state;
    return look("ecc", count) ? SUCCESS : NOT_SUPPORTED;
}

struct field { uint id, scope; long long timestamp, latency; uint type; int result; union { double d; uint ui; ull ull_; } value; };

int nvmlDeviceGetFieldValues(void *device, int count, struct field *values) {
    int state = check(device);
    if (state) return state;
    for (int i = 0; i < count; i++)
        values[i].result = values[i].id == 82 ? give(device, "memory_temperature", &values[i].value.ui) : NOT_SUPPORTED;
    return SUCCESS;
}

struct process { uint pid; ull memory; uint gpu_instance, compute_instance; };

int nvmlDeviceGetComputeRunningProcesses_v3(void *device, uint *count, struct process *processes) {
    uint pids[2], found = alive(pids), room = processes ? *count : 0;
    int state = check(device);
    if (state) return state;
    *count = found;
    if (found > room) return INSUFFICIENT_SIZE;
    for (uint i = 0; i < found; i++) processes[i] = (struct process){pids[i], 1ull << 30, 0, 0};
    return SUCCESS;
}

int nvmlDeviceGetNvLinkState(void *device, uint link, uint *active) {
    ull links;
    int state = check(device);
    if (state) return state;
    if (!look("links", &links)) return NOT_SUPPORTED;
    *active = link < links;
    return SUCCESS;
}

int nvmlEventSetCreate(void **set) { *set = cards_memory; return SUCCESS; }
int nvmlDeviceRegisterEvents(void *device, ull types, void *set) { (void)device; (void)types; (void)set; return SUCCESS; }

struct event { void *device; ull type, data; uint gpu_instance, compute_instance; };

int nvmlEventSetWait_v2(void *set, struct event *event, uint milliseconds) {
    static ull told;
    ull xid;
    (void)set; (void)milliseconds;
    if (!look("xid", &xid) || xid == told) return TIMEOUT;
    told = xid;
    memset(event, 0, sizeof *event);
    event->device = cards_memory;
    event->type = 8;
    event->data = xid;
    return SUCCESS;
}
