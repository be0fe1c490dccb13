// For libraries whose work may not be recorded as a CUDA graph.
#pragma once

namespace leat::cuda {

// Before the library is called: throws NotRecordable if this thread records.
void refuse_recording(const char* library);

}  // namespace leat::cuda
