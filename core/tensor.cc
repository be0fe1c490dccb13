#include "core/tensor.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <ostream>

#include "core/byte_size.h"
#include "core/execution/step_end.h"
#include "core/memory/block_memory.h"
#include "core/memory/promised_memory.h"
#include "core/variant.h"
#include "core/visit_dtype.h"

namespace leat {
namespace {

constexpr size_t alignment = 64;
constexpr size_t huge_page = size_t{2} << 20;

// AddressSanitizer detects the use of a freed block only if the block is really freed.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool keeps_blocks = false;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
constexpr bool keeps_blocks = false;
#else
constexpr bool keeps_blocks = true;
#endif
#else
constexpr bool keeps_blocks = true;
#endif

[[noreturn]] void fail_out_of_memory(size_t bytes) {
  fail(Code::resource_exhausted, "out of host memory: ", bytes,
       " bytes for one buffer could not be allocated");
}

bool is_block(size_t bytes) {
  return keeps_blocks && bytes >= BlockMemory::least && bytes <= BlockMemory::most;
}

void* take_block(size_t bytes) {
  void* const data = BlockMemory::process().take(bytes);
  if (data == nullptr) fail_out_of_memory(bytes);
  return data;
}

// Of elements that have constructors.
template <class T>
std::shared_ptr<Buffer> objects(int64_t count) {
  constexpr size_t most = SIZE_MAX / sizeof(T) / 2;
  const size_t bytes = std::min<size_t>(count, most) * sizeof(T);
  const MemoryClaim claim(bytes);
  T* const objects =
      is_block(bytes) ? static_cast<T*>(take_block(bytes)) : std::allocator<T>().allocate(count);
  const auto destroy = [objects, bytes](int64_t made) {
    std::destroy_n(objects, made);
    if (is_block(bytes)) {
      BlockMemory::process().give(objects, bytes);
    } else {
      std::allocator<T>().deallocate(objects, bytes / sizeof(T));
    }
  };
  int64_t made = 0;
  try {
    for (; made < count; ++made) {
      StepEnd::pace(8);
      std::construct_at(objects + made);
    }
  } catch (...) {
    destroy(made);
    throw;
  }
  return std::make_shared<Buffer>(objects, bytes, [count, destroy](void*) { destroy(count); });
}

template <class T>
void write_element(std::ostream& out, const T& value) {
  if constexpr (std::is_same_v<T, std::string>) {
    out << '"' << value << '"';
  } else if constexpr (sizeof(T) == 1) {
    out << static_cast<int>(value);
  } else if constexpr (std::is_same_v<T, half> || std::is_same_v<T, bfloat16>) {
    out << static_cast<float>(value);
  } else {
    out << value;
  }
}

}  // namespace

Buffer::Buffer(void* data, size_t bytes, std::function<void(void*)> release, Device* device)
    : data_(data), bytes_(bytes), release_(std::move(release)), device_(device) {}

Buffer::~Buffer() {
  if (release_) release_(data_);
}

std::shared_ptr<Buffer> Buffer::allocate(size_t bytes) {
  if (bytes == 0) return std::make_shared<Buffer>(nullptr, 0, nullptr);
  const MemoryClaim claim(bytes);
  if (is_block(bytes)) {
    return std::make_shared<Buffer>(take_block(bytes), bytes,
                                    [bytes](void* p) { BlockMemory::process().give(p, bytes); });
  }
  // Big blocks start on a huge page and ask for them: a 4 KB page fault costs 1.5 µs, so 64 MB of
  // them cost 25 ms.
  const bool is_big = bytes >= 2 * huge_page;
  const size_t unit = is_big ? huge_page : alignment;
  check(bytes < SIZE_MAX - unit, "cannot allocate a buffer of ", bytes, " bytes");
  const size_t rounded = (bytes + unit - 1) / unit * unit;
  void* data = std::aligned_alloc(unit, rounded);
  if (data == nullptr) fail_out_of_memory(bytes);
  if (!is_big) return std::make_shared<Buffer>(data, bytes, [](void* p) { std::free(p); });
  madvise(data, rounded, MADV_HUGEPAGE);
  PromisedMemory::process().add(data, rounded);
  return std::make_shared<Buffer>(data, bytes, [](void* p) {
    PromisedMemory::process().remove(p);
    std::free(p);
  });
}

Tensor::Tensor(DType dtype, const Shape& shape) : dtype_(dtype), shape_(shape) {
  check(shape.is_complete(), "a tensor needs a complete shape, not ", shape);
  elements_ = shape.elements();
  if (dtype == DType::string) {
    buffer_ = objects<std::string>(elements_);
  } else if (dtype == DType::variant) {
    buffer_ = objects<VariantPointer>(elements_);
  } else {
    check(dtype_size(dtype) > 0, "a tensor cannot have dtype ", dtype);
    buffer_ = Buffer::allocate(byte_size(dtype, shape));
  }
}

Tensor::Tensor(DType dtype, const Shape& shape, std::shared_ptr<Buffer> buffer, size_t offset)
    : dtype_(dtype),
      shape_(shape),
      elements_(shape.elements()),
      buffer_(std::move(buffer)),
      offset_(offset) {
  check(shape.is_complete(), "a tensor needs a complete shape, not ", shape);
  check(dtype != DType::string && dtype != DType::variant, "a tensor of ", dtype,
        " owns its elements; it cannot be a view of a buffer");
  check(elements_ == 0 || (buffer_ && offset <= buffer_->bytes() &&
                           byte_size(dtype, shape) <= buffer_->bytes() - offset),
        "a tensor of ", bytes(), " bytes at offset ", offset, " does not fit a buffer of ",
        buffer_ ? buffer_->bytes() : 0, " bytes");
}

Tensor Tensor::scalar(const char* value) { return scalar<std::string>(value); }

Tensor Tensor::zeros(const Shape& shape, DType dtype) {
  Tensor out(dtype, shape);
  if (dtype != DType::string && dtype != DType::variant && out.bytes() > 0)
    std::memset(out.raw(), 0, out.bytes());
  return out;
}

Tensor Tensor::ones(const Shape& shape, DType dtype) {
  Tensor out(dtype, shape);
  bool is_number = false;
  visit_dtype(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (!std::is_same_v<T, std::string>) {
      is_number = true;
      std::fill_n(out.data<T>(), out.elements(), T(1.0F));
    }
  });
  check(is_number, "Tensor::ones: there is no one of dtype ", dtype);
  return out;
}

Tensor Tensor::reshaped(const Shape& shape) const {
  check(shape.elements() == elements_, "a tensor of shape ", shape_, " (", elements_,
        " elements) cannot take shape ", shape);
  Tensor out = *this;
  out.shape_ = shape;
  return out;
}

Tensor Tensor::part(const Shape& shape, size_t offset) const {
  check(offset <= bytes() && byte_size(dtype_, shape) <= bytes() - offset, "a tensor of shape ",
        shape_, " has no part of shape ", shape, " at byte offset ", offset);
  Tensor out = *this;
  out.shape_ = shape;
  out.elements_ = shape.elements();
  out.offset_ += offset;
  return out;
}

Tensor Tensor::clone() const {
  if (!is_valid()) return {};
  Tensor out(dtype_, shape_);
  if (dtype_ == DType::string) {
    std::copy_n(data<std::string>(), elements_, out.data<std::string>());
  } else if (dtype_ == DType::variant) {
    std::copy_n(data<VariantPointer>(), elements_, out.data<VariantPointer>());
  } else if (elements_ > 0) {
    std::memcpy(out.raw(), raw(), bytes());
  }
  return out;
}

std::string Tensor::to_string(int limit) const {
  if (!is_valid()) return "<no tensor>";
  std::ostringstream out;
  out << dtype_ << shape_;
  if (device() != nullptr) return out.str() + " (device memory)";
  out << ' ';
  if (elements_ == 0) return out.str() + "[]";
  // How many lists begin at element i, and end before it: those whose size divides i.
  const auto lists_at = [&](int64_t i) {
    int lists = 0;
    int64_t size = 1;
    for (int axis = shape_.rank() - 1; axis >= 0; --axis) {
      size *= shape_[axis];
      if (i % size != 0) break;
      ++lists;
    }
    return lists;
  };
  visit_dtype(dtype_, [&]<class T>(TypeTag<T>) {
    const T* values = data<T>();
    for (int64_t i = 0; i < std::min<int64_t>(elements_, limit); ++i) {
      const int lists = lists_at(i);
      if (i > 0) out << std::string(lists, ']') << ", ";
      out << std::string(lists, '[');
      write_element(out, values[i]);
    }
  });
  const int ended = elements_ > limit ? lists_at(limit) : 0;  // before what is left out
  if (elements_ > limit) out << std::string(ended, ']') << ", …";
  out << std::string(shape_.rank() - ended, ']');
  return out.str();
}

int64_t Tensor::position(std::initializer_list<int64_t> indices) const {
  check(std::ssize(indices) == shape_.rank(), "at() got ", indices.size(),
        " indices for a tensor of shape ", shape_);
  int64_t position = 0;
  int axis = 0;
  for (const int64_t index : indices) {
    const int64_t extent = shape_[axis];
    check(index >= 0 && index < extent, "index ", index, " of axis ", axis,
          " lies outside a tensor of shape ", shape_);
    position = position * extent + index;
    ++axis;
  }
  return position;
}

void write_in_message(std::ostream& out, const Tensor& tensor) { out << tensor.to_string(); }

std::ostream& operator<<(std::ostream& out, const Tensor& tensor) {
  constexpr int64_t short_enough = 8, all = 1000, edge = 3;  // the latter two are NumPy's defaults
  const Shape& shape = tensor.shape();
  const int64_t elements = tensor.elements();
  if (elements <= short_enough || tensor.device() != nullptr) return out << tensor.to_string();
  const int rank = shape.rank();
  out << tensor.dtype() << shape << (rank > 1 ? '\n' : ' ');
  visit_dtype(tensor.dtype(), [&]<class T>(TypeTag<T>) {
    const T* values = tensor.data<T>();
    // `size` elements from `begin` on, of the axes from `axis` on.
    const auto write = [&](const auto& self, int axis, int64_t begin, int64_t size) -> void {
      if (axis == rank) return write_element(out, values[begin]);
      const int64_t extent = shape[axis], part = size / extent;
      out << '[';
      for (int64_t i = 0; i < extent; ++i) {
        if (i > 0) {
          out << ',';
          // A blank line between matrices, as NumPy has it.
          for (int inner = axis + 1; inner < rank; ++inner) out << '\n';
          out << std::string(axis + 1 < rank ? axis + 1 : 1, ' ');
        }
        if (elements > all && extent > 2 * edge && i == edge) {
          out << "...";
          i = extent - edge - 1;
        } else {
          self(self, axis + 1, begin + i * part, part);
        }
      }
      out << ']';
    };
    write(write, 0, 0, elements);
  });
  return out;
}

std::vector<int64_t> to_int64s(const Tensor& tensor) {
  const auto all = [&]<class T>(TypeTag<T>) {
    const auto values = tensor.span<T>();
    return std::vector<int64_t>(values.begin(), values.end());
  };
  switch (tensor.dtype()) {
    case DType::i16:
      return all(TypeTag<int16_t>{});
    case DType::i32:
      return all(TypeTag<int32_t>{});
    case DType::i64:
      return all(TypeTag<int64_t>{});
    default:
      fail(Code::invalid_argument, "expected a tensor of int16, int32 or int64, got ",
           tensor.dtype());
  }
}

}  // namespace leat
