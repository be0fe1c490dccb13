// The work that waits in a pool's queue: a line per source (work_source.h), served in turn. For
// thread_pool.cc, whose lock guards it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <functional>
#include <unordered_map>
#include <utility>

#include "core/execution/work_source.h"

namespace leat {

class WorkLines {
 public:
  // The scheduled work of one source.
  struct Line {
    WorkSource::Id source = WorkSource::none;
    std::deque<std::function<void()>> work;  // not begun; if not empty, the line is in turns_
    int running = 0;
  };

  bool are_empty() const { return turns_.empty(); }
  size_t taken() const { return taken_; }  // pieces of work, in total

  void add(WorkSource::Id source, std::function<void()> work) {
    Line& line = source == WorkSource::none ? own_ : lines_[source];
    line.source = source;
    if (line.work.empty()) turns_.push_back(&line);
    line.work.push_back(std::move(work));
  }

  // The next line: one with the least work running. A spare thread gets only a line with none
  // running. May be null.
  Line* next(bool is_spare) const {
    Line* next = nullptr;
    for (Line* line : turns_) {
      const bool is_free = line->running == 0 || line->source == WorkSource::requests;
      if (is_spare && (!is_free || line->source == WorkSource::none)) continue;
      if (is_free) return line;
      if (next == nullptr || line->running < next->running) next = line;
    }
    return next;
  }

  // Removes its first piece of work, which counts as running until ended().
  std::function<void()> take(Line& line) {
    std::function<void()> work = std::move(line.work.front());
    line.work.pop_front();
    turns_.erase(std::find(turns_.begin(), turns_.end(), &line));
    if (!line.work.empty()) turns_.push_back(&line);
    ++line.running;
    ++taken_;
    return work;
  }
  // May erase the line.
  void ended(Line& line) {
    const WorkSource::Id source = line.source;
    if (--line.running == 0 && line.work.empty() && source > WorkSource::requests)
      lines_.erase(source);
  }

 private:
  Line own_;  // of no source
  // lines_: those with work that waits or runs. turns_: those with work that waits.
  std::unordered_map<WorkSource::Id, Line> lines_;
  std::deque<Line*> turns_;
  size_t taken_ = 0;
};

}  // namespace leat
