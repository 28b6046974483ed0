// Words of a text: how often each comes, how long they are, which are in capitals. One reducer for each.
//
//   example_word_count LICENSE --godwit-workers=4
//
// Threads take pieces of the text and update reducers without waiting for each other. What get() gives is
// the same on every schedule, on processes, threads and several hosts. docs/reducers.md
#include <godwit/godwit.hpp>

#include <algorithm>
#include <array>
#include <cctype>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string>

namespace gw = godwit;

std::string text;  // read by main: every worker has it

gw::reducer<std::map<std::string, long>, gw::op::merge<gw::op::sum>> counts;
gw::reducer<std::array<long, 24>, gw::op::histogram> lengths;
gw::reducer<std::string, gw::op::append> capitals;  // of words in capital letters, in the order of the text
gw::reducer<double> average;                        // sums of floating-point numbers are exact

bool is_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }

void count(std::string word, std::size_t words) {
  ++(*lengths)[std::min<std::size_t>(word.size(), 23)];
  *average += static_cast<double>(word.size()) / static_cast<double>(words);
  if (std::ranges::all_of(word, [](char c) { return c < 'a'; })) *capitals += word.front();
  std::ranges::transform(word, word.begin(), [](unsigned char c) { return std::tolower(c); });
  ++(*counts)[word];
}

/// Words that begin in [low, high).
void count_all(std::size_t low, std::size_t high, std::size_t words) {
  if (high - low > 500) {
    const std::size_t middle = (low + high) / 2;
    gw::invoke([=] { count_all(low, middle, words); }, [=] { count_all(middle, high, words); });
    return;
  }
  for (std::size_t i = low; i < high; ++i) {
    if (!is_letter(text[i]) || (i != 0 && is_letter(text[i - 1]))) continue;
    std::size_t end = i;
    while (end < text.size() && is_letter(text[end])) ++end;
    count(text.substr(i, end - i), words);
  }
}

int main(int argc, char** argv) {
  std::ifstream file(argc > 1 && argv[1][0] != '-' ? argv[1] : "LICENSE");
  text.assign(std::istreambuf_iterator<char>(file), {});
  std::size_t words = 0;
  for (std::size_t i = 0; i < text.size(); ++i)
    words += is_letter(text[i]) && (i == 0 || !is_letter(text[i - 1]));
  return gw::run(argc, argv, [words] {
    count_all(0, text.size(), words);
    if (words == 0) throw std::runtime_error("there are no words: give the name of a text file");
    const auto all = counts.get();
    const auto most = std::ranges::max_element(all, {}, [](const auto& entry) { return entry.second; });
    const auto by_length = lengths.get();
    std::cout.precision(17);
    std::cout << words << " words, " << all.size() << " different ones, " << most->second << " times "
              << most->first << "; " << by_length[1] << " of one letter; " << average.get()
              << " letters on average; capitals: " << capitals.get().substr(0, 20) << '\n';
  });
}
