// expect: needs elements that lie one behind the other in memory
#include <godwit/godwit.hpp>

#include <deque>

void use(std::deque<int>& d) { godwit::sort(d); }
