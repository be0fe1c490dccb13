// Datasets that cache the elements of another once they have been read: in memory, or in files.
#include <mutex>

#include "graph/formats/checkpoint.h"
#include "kernels/data/dataset.h"

namespace leat {
namespace {

// Elements are kept once an iterator has seen them all; the iterators of this dataset share them.
class MemoryCacheDataset final : public ElementSource {
 public:
  explicit MemoryCacheDataset(Pointer input)
      : ElementSource(input->types(), {input}), input_(std::move(input)) {}

  int64_t cardinality() const override { return input_->cardinality(); }
  std::unique_ptr<DatasetIterator> iterate() const override {
    struct State {
      std::shared_ptr<const std::vector<Element>> kept;
      size_t at = 0;  // of `kept`
      std::unique_ptr<DatasetIterator> input;
      std::vector<Element> seen;
    };
    return iterator([this, s = State{}](Reading& reading) mutable {
      std::optional<Element> out;
      if (!s.kept && !s.input && !(s.kept = kept())) s.input = input_->make_iterator();
      if (s.kept) {
        if (s.at < s.kept->size()) out = (*s.kept)[s.at++];
        return out;
      }
      out = s.input->next(reading);
      if (out) {
        check_memory_for_element(*out);
        s.seen.push_back(*out);
      } else {
        s.kept = keep(std::move(s.seen));
        s.at = s.kept->size();
        s.input.reset();
      }
      return out;
    });
  }

 private:
  std::shared_ptr<const std::vector<Element>> kept() const {
    const std::lock_guard lock(mutex_);
    return kept_;
  }
  std::shared_ptr<const std::vector<Element>> keep(std::vector<Element> seen) const {
    const std::lock_guard lock(mutex_);
    if (!kept_) kept_ = std::make_shared<const std::vector<Element>>(std::move(seen));
    return kept_;
  }

  const Pointer input_;
  mutable std::mutex mutex_;
  mutable std::shared_ptr<const std::vector<Element>> kept_;
};

// The elements as a checkpoint, one after another: the same files as TensorFlow's.
class CacheFile {
 public:
  CacheFile(std::string prefix, FileRoots roots, size_t components)
      : prefix_(std::move(prefix)),
        roots_(std::move(roots)),
        width_(std::to_string(components - 1).size()) {}

  const std::string& prefix() const { return prefix_; }
  const FileRoots& roots() const { return roots_; }
  std::string lock() const { return prefix_ + "_0.lockfile"; }
  bool is_there() const { return is_file_there(checkpoint_index_path(prefix_), roots_); }
  // Padded, so that the alphabetical order of the keys is the order of the numbers.
  std::string key(int64_t element, size_t component) const {
    constexpr size_t element_width = 7;
    return padded(element, element_width) + "_" + padded(static_cast<int64_t>(component), width_);
  }

 private:
  static std::string padded(int64_t number, size_t width) {
    const std::string digits = std::to_string(number);
    return std::string(width - std::min(width, digits.size()), ' ') + digits;
  }

  const std::string prefix_;
  const FileRoots roots_;
  const size_t width_;
};

class FileCacheDataset final : public ElementSource {
 public:
  FileCacheDataset(Pointer input, std::string prefix, FileRoots roots)
      : ElementSource(input->types(), {input}),
        input_(std::move(input)),
        file_(std::move(prefix), std::move(roots), types().dtypes.size()) {}

  int64_t cardinality() const override { return input_->cardinality(); }
  std::unique_ptr<DatasetIterator> iterate() const override {
    return std::make_unique<Iterator>(*this);
  }

 private:
  // Reads the files if they exist when the first element is requested, else writes them. They
  // appear once all elements have been read.
  class Iterator final : public DatasetIterator {
   public:
    explicit Iterator(const FileCacheDataset& dataset) : dataset_(dataset) {}

   private:
    std::optional<Element> advance(Reading& reading) override {
      if (has_ended_) return std::nullopt;
      if (!reader_ && !input_) open();
      std::optional<Element> out = reader_ ? read() : write(reading);
      if (out) ++at_;
      if (!out) has_ended_ = true;
      return out;
    }

    void open() {
      const CacheFile& file = dataset_.file_;
      if (!file.is_there()) {
        auto lock = std::make_unique<FileLock>(file.lock(), file.roots());
        if (!file.is_there()) {  // no other iterator has finished it in between
          writer_ = std::make_unique<CheckpointWriter>(file.prefix(), file.roots());
          lock_ = std::move(lock);
          input_ = dataset_.input_->make_iterator();
          return;
        }
      }
      reader_ = std::make_unique<CheckpointReader>(file.prefix(), file.roots());
    }

    std::optional<Element> read() const {
      Element out;
      for (size_t i = 0; i < dataset_.types().dtypes.size(); ++i) {
        const std::string key = dataset_.file_.key(at_, i);
        if (i == 0 && !reader_->has(key)) return std::nullopt;
        out.push_back(reader_->read(key));
      }
      return out;
    }

    std::optional<Element> write(Reading& reading) {
      std::optional<Element> out = input_->next(reading);
      try {
        if (out) {
          add(*out);
        } else {
          writer_->finish();
        }
      } catch (...) {
        end_writing();
        throw;
      }
      if (!out) end_writing();
      return out;
    }

    void add(const Element& element) {
      for (size_t i = 0; i < element.size(); ++i) {
        if (element[i].dtype() == DType::variant) {
          fail(Code::unimplemented, "the cache in file '", dataset_.file_.prefix(),
               "' cannot hold sparse or ragged tensors or other variants: use cache() without a "
               "file name, which keeps elements in memory");
        }
        writer_->add(dataset_.file_.key(at_, i), element[i]);
      }
    }

    // Removes unfinished files.
    void end_writing() {
      has_ended_ = true;
      writer_.reset();
      lock_.reset();
    }

    const FileCacheDataset& dataset_;
    std::unique_ptr<FileLock> lock_;
    std::unique_ptr<CheckpointWriter> writer_;
    std::unique_ptr<DatasetIterator> input_;
    std::unique_ptr<CheckpointReader> reader_;
    int64_t at_ = 0;
    bool has_ended_ = false;
  };

  const Pointer input_;
  const CacheFile file_;
};

ElementSource::Pointer cached(ExecuteContext& c) {
  auto file = scalar_input<std::string>(c, 1, "filename");
  if (file.empty()) return std::make_shared<MemoryCacheDataset>(input_dataset(c));
  return std::make_shared<FileCacheDataset>(input_dataset(c), std::move(file),
                                            files_of(c.device()));
}

const Op cache_op{dataset_op({.name = "CacheDataset",
                              .doc = "The same elements, read once and kept in memory or in the "
                                     "checkpoint `filename`, which is used if it exists.",
                              .inputs = {input_dataset_arg, "filename: string"},
                              .attrs = dataset_attrs({metadata_attr})},
                             cached)};
const Op cache_v2_op{
    dataset_op({.name = "CacheDatasetV2",
                .doc = "CacheDataset. cache: a DummyMemoryCache; the dataset has its own memory.",
                .inputs = {input_dataset_arg, "filename: string", "cache: resource"},
                .attrs = dataset_attrs({metadata_attr})},
               cached)};

}  // namespace
}  // namespace leat
