// Says whether a compiler can do a set of flags at all.
#include <iostream>
int main() { std::cout << "plain\n"; }
