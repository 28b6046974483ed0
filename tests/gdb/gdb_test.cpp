// The gdb commands of tools/gdb/godwit.py, in batch mode, on the program situation.cpp, which stands still
// with one running thread on each of two workers, three queued ones (one of them stolen), three suspended,
// one ready.
// test: timeout=300 once skip-asan skip-tsan skip-qemu
#include "gdb/under_gdb.hpp"

namespace {

using namespace under_gdb;

TEST(gdb, one_worker_attached) {
  NEED_GDB();
  situation s;
  for (const unsigned worker : {0u, 1u}) {
    const std::string text = gdb("-p " + s.worker(worker), {"godwit threads"});
    check_rows(text, worker == 0, worker == 1);
    expect_in_order(text, {"note: not stopped: worker " + std::to_string(1 - worker)});
  }
  EXPECT_EQ(s.finish(), "142\nstatus 0");
}

TEST(gdb, all_workers_attached) {
  NEED_GDB();
  situation s;
  const std::string text =
      gdb("-p " + s.worker(1), {"godwit attach", "godwit threads", "echo -- next\\n", "godwit backtrace all",
                                "echo -- next\\n", "godwit workers", "info inferiors"});
  const auto second = text.find("-- next\n");
  const auto third = text.find("-- next\n", second + 1);
  ASSERT_NE(third, std::string::npos) << text;
  const std::vector<row> rows = check_rows(text.substr(0, second), true, true);
  EXPECT_EQ(text.find("note:"), std::string::npos) << text;
  check_backtraces(text.substr(second, third - second), rows);
  const std::string workers = text.substr(third);
  for (const unsigned worker : {0u, 1u})
    EXPECT_TRUE(std::regex_search(
        workers, std::regex("\n[* ] +" + std::to_string(worker) + " +" + s.worker(worker) +
                            " +stopped by a debugger.* runs thread " + std::to_string(worker) + "\\.")))
        << workers;
  expect_in_order(
      workers, {"2 workers on this host, policy greedy", "process " + s.worker(1), "process " + s.worker(0)});
  EXPECT_EQ(s.finish(), "142\nstatus 0");
}

TEST(gdb, the_supervising_process) {
  NEED_GDB();
  situation s;
  const std::string text =
      gdb("-p " + s.supervisor(), {"godwit threads", "godwit backtrace", "godwit workers"});
  check_rows(text, false, false);
  expect_in_order(text, {"the selected process runs no thread", "the selected process is the supervisor"});
  EXPECT_EQ(s.finish(), "142\nstatus 0");
}

TEST(gdb, a_thread_can_be_looked_at) {
  NEED_GDB();
  situation s;
  const std::string list = gdb("-p " + s.worker(0), {"godwit threads"});
  std::string second;
  for (const row& r : rows_of(list))
    if (r.state == "suspended") second = second.empty() ? "first" : second == "first" ? r.id : second;
  // Not "frame function": gdb 13 crashes in it whenever there are two inferiors of one program.
  const std::string middle =
      "python import godwit_gdb.frames as g; [f.select() for f in g.frames() if f.name() == \"wait_middle\"]";
  const std::string text =
      gdb("-p " + s.worker(0),
          {"godwit select " + second, "godwit where", middle, "frame", "info args", "print n * 1000",
           "godwit select", "info inferiors", "godwit select", "godwit select 9.9", "godwit where"});
  expect_in_order(
      text,
      {"Thread " + second + ": suspended", "wait_inner (",
       "suspended on worker 1: wait_inner at " + at("wait_inner") + "; spawned by root at situation.cpp:",
       "wait_middle", "n = 20", "= 20000", "back in the process", "process " + s.worker(0),
       "no thread is selected", "there is no thread 9.9",
       "running on worker 0: leaf at " + at("leaf") + "; spawned by level_two at " + at("level_two")});
  EXPECT_EQ(s.finish(), "142\nstatus 0");
}

TEST(gdb, a_copy_is_not_gone_back_from_where_the_user_went_elsewhere) {
  NEED_GDB();
  situation s;
  std::string id;
  for (const row& r : rows_of(gdb("-p " + s.worker(0), {"godwit threads"})))
    if (r.state == "suspended") id = r.id;
  const std::string text = gdb("-p " + s.worker(1), {"add-inferior", "godwit select " + id, "inferior 1",
                                                     "godwit where", "info inferiors", "godwit select " + id,
                                                     "inferior 2", "godwit select", "info inferiors"});
  expect_in_order(text, {"wait_inner (", "running on worker 1: spinner at ", "* 1    process " + s.worker(1),
                         "back in the process", "* 2 "});
  EXPECT_EQ(text.find("Error"), std::string::npos) << text;
  EXPECT_EQ(s.finish(), "142\nstatus 0");
}

TEST(gdb, namespaces_without_a_name_hide_no_function) {
  const std::string text =
      gdb("", {"python import godwit_gdb.frames as f; import godwit_gdb.text as t; "
               "print([g(\"app::(anonymous namespace)::work<int>(char)\") for g in (f.plain_name, "
               "lambda n: t.place_text((n, None, 0)), f.is_runtime)])"});
  if (const char* reason = why_not(); reason != nullptr) GTEST_SKIP() << reason;
  EXPECT_NE(text.find("[\'app::work\', \'app::work<int>\', False]"), std::string::npos) << text;
}

TEST(gdb, a_copy_that_the_user_removed_is_left_alone) {
  NEED_GDB();
  situation s;
  std::string id;
  for (const row& r : rows_of(gdb("-p " + s.worker(0), {"godwit threads"})))
    if (r.state == "suspended") id = r.id;
  const std::string remove =
      "python n = gdb.selected_inferior().num; [gdb.execute(c) for c in (\"core-file\", \"inferior 1\", "
      "f\"remove-inferiors {n}\")]";
  const std::string text =
      gdb("-p " + s.worker(0), {"godwit select " + id, "set confirm off", remove, "godwit select",
                                "show confirm", "godwit select " + id, "godwit select", "info inferiors"});
  expect_in_order(text, {"wait_inner (", "back in the process", "operations is off", "wait_inner (",
                         "back in the process", "* 1    process " + s.worker(0)});
  EXPECT_EQ(text.find("Error"), std::string::npos) << text;
  EXPECT_EQ(s.finish(), "142\nstatus 0");
}

// Everything that a command could have touched is as before: registers, the stacks, the heap with the
// images, the words.
TEST(gdb, a_backtrace_shows_the_users_frames) {
  NEED_GDB();
  situation s;
  const std::string text = gdb("-p " + s.worker(0), {"backtrace", "echo -- next\\n", "backtrace -no-filters",
                                                     "echo -- next\\n", "godwit backtrace -full"});
  const auto second = text.find("-- next\n"), third = text.find("-- next\n", second + 1);
  ASSERT_NE(third, std::string::npos) << text;
  const std::vector<std::string> users{"leaf",          at("leaf"),  "level_two",
                                       at("level_two"), "level_one", "holder"};
  const std::string shown = text.substr(0, second);
  expect_in_order(shown, users);
  for (const char* hidden : {"godwit::", "task.hpp", "std::invoke"})
    EXPECT_EQ(shown.find(hidden), std::string::npos) << shown;
  for (const std::string& all : {text.substr(second, third - second), text.substr(third)}) {
    expect_in_order(all, users);
    expect_in_order(all, {"godwit::detail::child<", "task.hpp"});
  }
  expect_in_order(text.substr(third), {"No locals."});
  EXPECT_EQ(s.finish(), "142\nstatus 0");
}

TEST(gdb, the_process_is_not_changed) {
  NEED_GDB();
  situation s({"--godwit-stack-bytes=1M", "--godwit-heap-bytes=1M"});
  const std::string sum =
      "python import zlib; import godwit_gdb.state as g; r = g.Run(); n = r.names; i = "
      "gdb.selected_inferior(); "
      "print(\"sum\", [zlib.crc32(bytes(i.read_memory(n[\"base\"] + n[\"span\"] * (w + 1), n[\"span\"]))) "
      "for w in (0, 1)], "
      "[str(gdb.newest_frame().read_register(x.name)) for x in i.architecture().registers(\"general\")])";
  const std::string text =
      gdb("-p " + s.worker(0),
          {"godwit attach", sum, "godwit threads", "godwit backtrace all", "godwit backtrace 1.7",
           "godwit select 0.1", "info locals", "godwit select", sum, "show confirm", "info inferiors"});
  std::vector<std::string> sums;
  std::istringstream in(text);
  for (std::string l; std::getline(in, l);)
    if (l.rfind("sum [", 0) == 0) sums.push_back(l);
  ASSERT_EQ(sums.size(), 2u) << text;
  EXPECT_EQ(sums[0], sums[1]);
  expect_in_order(text, {"there is no thread 1.7", "* 1    process " + s.worker(0)});
  EXPECT_EQ(s.finish(), "142\nstatus 0");
}

TEST(gdb, a_program_that_gdb_starts) {
  NEED_GDB();
  const std::string folder = new_folder();
  const std::string file = folder + "/held";
  const std::string text = gdb(std::string("--args ") + SITUATION + " " + file,
                               {"set detach-on-fork off", "set schedule-multiple on",
                                "handle SIGURG nostop noprint pass", "break leaf", "run", "godwit threads",
                                "delete", "echo -- next\\n", "godwit backtrace all", "kill inferiors 1 2 3"});
  std::filesystem::remove_all(folder);
  if (text.find("9 threads") == std::string::npos) FAIL() << text;
  const auto second = text.find("-- next\n");
  const std::vector<row> rows = rows_of(text.substr(0, second));
  EXPECT_EQ(rows.size(), 9u) << text;
  EXPECT_EQ(find(rows, "leaf at situation.cpp:").worker, 0);
  EXPECT_EQ(text.find("note:"), std::string::npos) << "all are stopped\n" << text;
  for (const row& r : rows)
    if (r.state == "suspended") {
      EXPECT_EQ(r.where.rfind("wait_inner at " + at("wait_inner"), 0), 0u) << text;
    }
}

TEST(gdb, a_core_file) {
  NEED_GDB();
  situation s({"--godwit-stack-bytes=1M", "--godwit-heap-bytes=1M"});
  const std::string core = s.folder() + "/core";
  const std::string made = gdb("-p " + s.worker(0), {"generate-core-file " + core}, "ulimit -f 400000;");
  ASSERT_NE(made.find("Saved corefile"), std::string::npos) << made;
  EXPECT_EQ(s.finish(), "142\nstatus 0");  // what follows knows the core file only
  const std::string text =
      gdb(std::string(SITUATION) + " " + core, {"godwit threads", "echo -- next\\n", "godwit backtrace all",
                                                "echo -- next\\n", "godwit attach", "godwit workers"});
  const auto second = text.find("-- next\n");
  const auto third = text.find("-- next\n", second + 1);
  ASSERT_NE(third, std::string::npos) << text;
  const std::vector<row> rows = check_rows(text.substr(0, second), true, false);
  expect_in_order(text.substr(0, second), {"no registers in this core file", "note: this is a core file"});
  check_backtraces(text.substr(second, third - second), rows);
  expect_in_order(text.substr(second, third - second), {"its registers are in that worker's own core file"});
  expect_in_order(text.substr(third),
                  {"a core file has no other workers", "in the core file", "not in this core file"});
}

/// Lines of `godwit memory ADDRESS`: part, home, owner, version, place.
std::vector<std::string> parts_of(const std::string& text) {
  static const std::regex line(R"(^(\d+) +global:0x[0-9a-f]+ +(\d+) +(\d+) +(\d+) +(.*)$)");
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string l; std::getline(in, l);)
    if (std::smatch m; std::regex_match(l, m, line))
      parts.push_back(m.str(1) + " " + m.str(2) + " " + m.str(3) + " " + m.str(4) + " " + m.str(5));
  return parts;
}

TEST(gdb, movable_memory) {
  NEED_GDB();
  situation s({}, MEMORY_SITUATION);
  std::string ready, movable, blocks, local;
  std::ifstream(s.file()) >> ready >> movable >> blocks >> local;
  ASSERT_EQ(ready, "ready");
  char third[32];
  std::snprintf(third, sizeof third, "%llx", std::stoull(movable, nullptr, 16) + 2 * 4096 + 40);
  const std::string text =
      gdb("-p " + s.supervisor(),
          {"godwit memory", "echo -- next\\n", "godwit memory global:0x" + movable, "echo -- next\\n",
           "godwit memory 0x" + std::string(third), "godwit memory global:0x" + blocks + "+60000",
           "godwit memory global:0x" + local, "godwit memory 5", "godwit memory no_such"});
  const auto second = text.find("-- next\n");
  const auto rest = text.find("-- next\n", second + 1);
  ASSERT_NE(rest, std::string::npos) << text;
  EXPECT_TRUE(std::regex_search(text.substr(0, second),
                                std::regex("global:0x" + movable + " +24 KiB +cyclic +6 +4096 B +6 +2 +0\n")))
      << text;
  EXPECT_EQ(
      parts_of(text.substr(second, rest - second)),
      (std::vector<std::string>{"0 0 0 0 owned, 0 uses", "1 1 1 0 owned, 0 uses", "2 0 1 1 owned, 0 uses",
                                "3 1 1 2 owned, 0 uses", "4 0 0 0 owned, 0 uses", "5 1 1 0 owned, 0 uses"}))
      << text;
  expect_in_order(text.substr(rest),
                  {"lies in part 2 of 6 of global:0x" + movable, "home: worker 0",
                   "owner, as this host believes: worker 1, version 1", "place on this host: owned, 0 uses",
                   "lies in global:0x" + blocks, "which does not move: worker 1 has it",
                   "global:0x" + local + ": local memory of worker", "global:0x5 lies in no live allocation",
                   "godwit: no_such: "});
  // A global_ptr by name, in the frame that has it.
  unsigned holder = 0;
  for (const unsigned w : {0u, 1u})
    if (gdb("-p " + s.worker(w), {"backtrace 12"}).find("hold (") != std::string::npos) holder = w;
  expect_in_order(gdb("-p " + s.worker(holder),
                      {"python import godwit_gdb.frames as g; [f.select() for f in g.frames() if f.name() == "
                       "\"hold\"]",
                       "godwit memory p", "godwit memory (godwit::global_ptr<unsigned long>&)p"}),
                  {"global:0x" + movable + ": 24 KiB, cyclic, 6 parts of 4096 B",
                   "global:0x" + movable + ": 24 KiB, cyclic, 6 parts of 4096 B"});
  EXPECT_EQ(s.finish(), "142\nstatus 0");
}

TEST(gdb, blocks_of_the_shared_heap) {
  NEED_GDB();
  for (const bool recorded : {false, true}) {
    situation s(recorded ? std::vector<std::string>{"--godwit-check-heap"} : std::vector<std::string>{},
                MEMORY_SITUATION);
    std::string word, small, large, freed;
    std::ifstream file(s.file());
    for (int i = 0; i < 4; ++i) file >> word;
    file >> small >> large >> freed;
    const std::string text =
        gdb("-p " + s.supervisor(),
            {"godwit block " + small, "godwit block " + small + "+90", "godwit block " + large + "+100000",
             "godwit block " + freed, "godwit block 5", "godwit block no_such"});
    const std::string at = recorded ? ", allocated at memory_situation.cpp:" : "\n";
    expect_in_order(text, {small + " is block " + small + " of 320 bytes, of worker ", "'s part: in use",
                           recorded ? ", 300 bytes" + at : at,
                           "lies 90 bytes into block " + small + " of 320 bytes, of worker ",
                           "lies 100000 bytes into block " + large + " of 262144 bytes: in use",
                           recorded ? ", 200000 bytes" + at : at,
                           freed + " is block " + freed + " of 768 bytes, of worker ", "'s part: free\n",
                           "0x5 lies in no block of the heap", "godwit: no_such: "});
    EXPECT_TRUE(s.finish().ends_with("142\nstatus 0"));
  }
}

TEST(gdb, what_cannot_be_shown_is_said) {
  NEED_GDB();
  situation s;
  const std::string other_policy =  // of this process only, and nobody but debuggers reads it
      "python import struct; import godwit_gdb.state as g; a = g.table_address(); i = "
      "gdb.selected_inferior(); "
      "m = bytes(i.read_memory(a, 40 + 80 * 32)); p = m.index(b\"lists_threads\"); i.write_memory(a + p + "
      "24, bytes(8)); "
      "i.write_memory(a + 8, b\"rtc\\0\")";
  const std::string other_version = "python i.write_memory(a, b\"\\x63\")";
  const std::string text = gdb("-p " + s.worker(1), {other_policy, "godwit threads", "godwit backtrace 1.0",
                                                     other_version, "godwit threads"});
  expect_in_order(text, {"policy rtc: only workers are listed", s.worker(0), s.worker(1),
                         "2 workers on this host, policy rtc", "policy rtc: only workers are listed",
                         "speaks version 99, this script version 3"});
  EXPECT_EQ(s.finish(), "142\nstatus 0");
  const std::string none = gdb("", {"godwit threads", "help godwit backtrace"});
  expect_in_order(none, {"no process: attach to a worker", "Backtrace of any lightweight thread"});
  const std::string outside =
      gdb(std::string("--args ") + SITUATION + " x", {"break main", "run", "godwit workers", "kill"});
  expect_in_order(outside, {"this process is not inside godwit::run"});
  expect_in_order(gdb("--args /bin/sh -c :", {"starti", "godwit threads", "kill"}),
                  {"there is no symbol godwit_debug_"});
}

}  // namespace
