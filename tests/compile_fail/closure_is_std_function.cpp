// expect: this callable cannot migrate: it captures something by value that is not plain bytes
// A std::function owns memory of one worker.
#include <godwit/godwit.hpp>

#include <functional>

int use(const std::function<int()>& f) { return godwit::spawn(f).join(); }
