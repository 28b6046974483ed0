// The gdb commands where workers are threads of one process: situation.cpp, and threads that wait for other
// things than joins (parked_situation.cpp).
// test: timeout=300 once skip-asan skip-tsan skip-qemu
#include "gdb/under_gdb.hpp"

namespace {

using namespace under_gdb;

const std::vector<std::string> on_threads_{"--godwit-substrate=threads"};

std::string view_of(const std::string& text, int number) {
  std::size_t from = 0;
  for (; number > 0; --number) from = text.find("-- next\n", from) + 8;
  return text.substr(from, text.find("-- next\n", from) - from);
}

TEST(gdb_in_place, all_threads_of_a_process) {
  NEED_GDB();
  situation s(on_threads_);
  const std::string text =
      gdb("-p " + s.supervisor(), {"godwit threads", "echo -- next\\n", "godwit backtrace all",
                                   "echo -- next\\n", "godwit workers", "godwit attach"});
  const std::vector<row> rows = check_rows(view_of(text, 0), true, true);
  EXPECT_EQ(text.find("note:"), std::string::npos) << "all are stopped\n" << text;
  check_backtraces(view_of(text, 1), rows);
  EXPECT_EQ(view_of(text, 1).find("godwit::"), std::string::npos) << "the user's frames only\n" << text;
  expect_in_order(view_of(text, 2),
                  {"runs thread 0.", "runs thread 1.", "2 workers on this host, policy greedy",
                   "the selected thread is the supervisor", "gdb has them all"});
  EXPECT_EQ(s.finish(), "142\nstatus 0");
}

TEST(gdb_in_place, threads_that_wait_for_other_things_than_joins) {
  NEED_GDB();
  situation s({}, PARKED_SITUATION);
  const std::string select =
      "python import godwit_gdb.view as g; gdb.execute(\"godwit select \" + [t.id for t in g.View().threads "
      "if "
      "t.parked_at == \"mutex\"][0])";
  const std::string text = gdb(
      "-p " + s.supervisor(), {"godwit threads", "echo -- next\\n", select, "print *add + 2", "godwit where",
                               "backtrace", "up", "godwit select", "echo -- next\\n", "backtrace", "thread 2",
                               "godwit where", "echo -- next\\n", "disable unwinder global godwit", select});
  const auto place = [](const char* mark) {
    return std::string(mark) + " at " + at(mark, "parked_situation.cpp");
  };
  const std::vector<row> rows = rows_of(view_of(text, 0));
  std::map<std::string, int> where;
  for (const row& r : rows) ++where[r.state + " " + r.where];
  EXPECT_EQ(where["running " + place("stand_still")], 1) << text;
  EXPECT_EQ(where["suspended " + place("wants_lock") + "; waits for a mutex"], 2) << text;
  EXPECT_EQ(where["suspended " + place("wants_unit") + "; waits for a semaphore"], 1) << text;
  EXPECT_EQ(where["new not begun: a closure of root"], 1) << text;
  expect_in_order(view_of(text, 1),
                  {"waits for a mutex", "wants_lock (", "= 42\n",
                   "suspended on worker 0: " + place("wants_lock"), "wants_lock(", "back in the process"});
  EXPECT_EQ(view_of(text, 1).find("stand_still"), std::string::npos) << "another thread's\n" << text;
  expect_in_order(view_of(text, 2), {"syscall", "running on worker 0: " + place("stand_still")});
  expect_in_order(view_of(text, 3), {"is its unwinder disabled"});
  EXPECT_EQ(s.finish(), "142\nstatus 0");
}

// Whatever the user does after `godwit select`, commands speak of what is selected then, and leave it so.
TEST(gdb_in_place, what_is_shown_ends_with_another_selection_and_when_the_process_goes_on) {
  NEED_GDB();
  situation s({}, PARKED_SITUATION);
  const std::string select =
      "python import godwit_gdb.view as g; gdb.execute(\"godwit select \" + [t.id for t in g.View().threads "
      "if t.parked_at == \"semaphore\"][0])";
  const std::string text = gdb("-p " + s.supervisor(),
                               {select, "thread 2", "godwit where", "thread", "echo -- next\\n", "thread 1",
                                select, "thread 2", "godwit select", "thread", "echo -- next\\n", "thread 2",
                                select, "stepi", "godwit where", "thread 1", "godwit threads", "thread"});
  expect_in_order(view_of(text, 0),
                  {"waits for a semaphore", "running on worker 0: stand_still at ", "[Current thread is 2 "});
  expect_in_order(view_of(text, 1),
                  {"waits for a semaphore", "back in the process", "[Current thread is 2 "});
  expect_in_order(view_of(text, 2), {"waits for a semaphore", "running on worker 0: stand_still at ",
                                     "suspended", "[Current thread is 1 "});
  EXPECT_EQ(s.finish(), "142\nstatus 0");
}

}  // namespace
