/* A plugin of qemu-user (7.0 to 8.2) that counts: instructions, system calls, and on SPARC V9 the traps by
 * which glibc saves and loads contexts, and flushes of register windows. Compiled and loaded by
 * bench/count_instructions.py; at the end of the program a line goes to the file named by the environment
 * variable QEMU_COUNT_OUT. The functions declared here are qemu's interface for plugins, version 1; Debian
 * has no header of it. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct qemu_plugin_tb;
struct qemu_plugin_insn;
typedef uint64_t plugin_id;
enum { ADD_U64 = 0 };
void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id, void (*)(plugin_id, struct qemu_plugin_tb*));
void qemu_plugin_register_vcpu_syscall_cb(plugin_id, void (*)(plugin_id, unsigned cpu, int64_t number,
                                                              uint64_t, uint64_t, uint64_t, uint64_t,
                                                              uint64_t, uint64_t, uint64_t, uint64_t));
void qemu_plugin_register_vcpu_insn_exec_inline(struct qemu_plugin_insn*, int op, void* counter, uint64_t by);
void qemu_plugin_register_atexit_cb(plugin_id, void (*)(plugin_id, void*), void*);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb*);
struct qemu_plugin_insn* qemu_plugin_tb_get_insn(const struct qemu_plugin_tb*, size_t);
const void* qemu_plugin_insn_data(const struct qemu_plugin_insn*);

int qemu_plugin_version = 1;

static uint64_t instructions, calls, flushes;
static int sparc;

static void translated(plugin_id id, struct qemu_plugin_tb* block) {
  (void)id;
  for (size_t i = 0; i < qemu_plugin_tb_n_insns(block); ++i) {
    struct qemu_plugin_insn* const one = qemu_plugin_tb_get_insn(block, i);
    qemu_plugin_register_vcpu_insn_exec_inline(one, ADD_U64, &instructions, 1);
    if (!sparc) continue;
    unsigned char b[4];
    memcpy(b, qemu_plugin_insn_data(one), 4);
    const uint32_t word = (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
    /* ta 0x6e, ta 0x6f: getcontext, setcontext in the kernel; no system call by number */
    if (word == 0x91d0206e || word == 0x91d0206f)
      qemu_plugin_register_vcpu_insn_exec_inline(one, ADD_U64, &calls, 1);
    if (word == 0x81580000 || word == 0x91d02003) /* flushw, ta 3 */
      qemu_plugin_register_vcpu_insn_exec_inline(one, ADD_U64, &flushes, 1);
  }
}

static void called(plugin_id id, unsigned cpu, int64_t number, uint64_t a, uint64_t b, uint64_t c, uint64_t d,
                   uint64_t e, uint64_t f, uint64_t g, uint64_t h) {
  (void)id, (void)cpu, (void)number, (void)a, (void)b, (void)c, (void)d, (void)e, (void)f, (void)g, (void)h;
  __atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED);
}

static void end(plugin_id id, void* data) {
  (void)id, (void)data;
  FILE* const to = fopen(getenv("QEMU_COUNT_OUT"), "w");
  if (to == NULL) return;
  fprintf(to, "%llu %llu %llu\n", (unsigned long long)instructions, (unsigned long long)calls,
          (unsigned long long)flushes);
  fclose(to);
}

struct qemu_info {
  const char* target_name; /* more follows */
};
int qemu_plugin_install(plugin_id id, const struct qemu_info* info, int argc, char** argv) {
  (void)argc, (void)argv;
  sparc = strcmp(info->target_name, "sparc64") == 0;
  qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
  qemu_plugin_register_vcpu_syscall_cb(id, called);
  qemu_plugin_register_atexit_cb(id, end, NULL);
  return 0;
}
