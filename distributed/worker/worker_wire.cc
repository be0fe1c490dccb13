#include "distributed/worker/worker_wire.h"

#include "distributed/cluster_view.h"
#include "distributed/proto/worker.pb.h"
#include "distributed/wire/framed_message.h"
#include "graph/import/graph_def.h"

namespace leat::wire {
namespace {

template <class Message>
Message unframe(const Bytes& bytes) {
  return FramedMessage(bytes).header<Message>();
}

// ---- Parts of messages ----

void write_edge(const CutEdge& edge, Edge& out) {
  out.set_id(edge.id);
  out.set_tensor_name(edge.tensor_name);
  out.set_source(edge.source.to_string());
  out.set_destination(edge.destination.to_string());
  out.set_dtype(static_cast<int>(edge.dtype));
  out.set_unknown_rank(!edge.shape.has_rank());
  for (const int64_t dim : edge.shape.dims()) out.add_dims(dim);
  out.set_producer(edge.producer);
  out.set_wave(edge.wave);
  out.set_repeats(edge.repeats);
}

bool is_dtype(int32_t number) {
  return number > 0 && number < 256 &&
         dtype_name(static_cast<DType>(number)) != dtype_name(DType::invalid);
}

CutEdge read_edge(const Edge& edge) {
  CutEdge out;
  out.id = edge.id();
  out.tensor_name = edge.tensor_name();
  out.source = DeviceName::parse(edge.source());
  out.destination = DeviceName::parse(edge.destination());
  check(edge.dtype() == 0 || is_dtype(edge.dtype()), "edge ", edge.tensor_name(), " has the dtype ",
        edge.dtype(), ", which is unknown");
  out.dtype = static_cast<DType>(edge.dtype());
  if (!edge.unknown_rank()) {
    check(edge.dims_size() <= Shape::max_rank, "edge ", edge.tensor_name(), " has rank ",
          edge.dims_size());
    out.shape =
        Shape(std::span<const int64_t>(edge.dims().data(), static_cast<size_t>(edge.dims_size())));
  }
  out.producer = edge.producer();
  out.wave = edge.wave();
  out.repeats = edge.repeats();
  return out;
}

Code code_of(int code) {
  check(code >= 0 && code <= static_cast<int>(Code::unauthenticated), code,
        " is not an error code");
  return static_cast<Code>(code);
}

using LinkList = google::protobuf::RepeatedPtrField<Link>;

void write(const std::vector<PeerLink>& links, LinkList* out) {
  for (const PeerLink& link : links) {
    Link& copy = *out->Add();
    copy.set_task(link.task.to_string());
    copy.set_is_shared_memory(link.is_shared_memory);
  }
}

std::vector<PeerLink> read(const LinkList& links) {
  std::vector<PeerLink> out;
  for (const Link& link : links)
    out.push_back({TaskName::parse(link.task()), link.is_shared_memory()});
  return out;
}

using DeviceList = google::protobuf::RepeatedPtrField<Device>;

void write(const std::vector<DeviceDescription>& devices, DeviceList* out) {
  for (const DeviceDescription& device : devices) {
    Device& copy = *out->Add();
    copy.set_name(device.name);
    copy.set_type(device.type);
    copy.set_memory_limit(device.memory_limit);
    copy.set_problem(device.problem);
  }
}

std::vector<DeviceDescription> read(const DeviceList& devices, uint64_t incarnation) {
  std::vector<DeviceDescription> out;
  for (const Device& device : devices) {
    DeviceName::parse(device.name());  // it is one
    out.push_back(
        {device.name(), device.type(), device.memory_limit(), incarnation, device.problem()});
  }
  return out;
}

using ActivityList = google::protobuf::RepeatedPtrField<Activity>;

void write(const std::vector<StepActivity>& activity, ActivityList* out) {
  for (const StepActivity& each : activity) {
    Activity& copy = *out->Add();
    copy.set_what(each.what);
    copy.set_from(each.from);
    copy.set_ns(each.ns);
  }
}

std::vector<StepActivity> read(const ActivityList& activity) {
  std::vector<StepActivity> out;
  for (const Activity& each : activity) out.push_back({each.what(), each.from(), each.ns()});
  return out;
}

void write(const TaskActivity& activity, ActivityReply& out) {
  for (const RunningStep& step : activity.steps) {
    ActivityReply::Step& copy = *out.add_steps();
    copy.set_step(static_cast<uint64_t>(step.step));
    copy.set_session(step.session);
    copy.set_master(step.master.job.empty() ? "" : step.master.to_string());
    copy.set_ns(step.ns);
    write(step.activity, copy.mutable_activity());
  }
  write(activity.waits, out.mutable_waits());
}

TaskActivity read(const ActivityReply& in) {
  TaskActivity out;
  for (const ActivityReply::Step& step : in.steps()) {
    out.steps.push_back({static_cast<int64_t>(step.step()), step.session(),
                         step.master().empty() ? TaskName() : TaskName::parse(step.master()),
                         step.ns(), read(step.activity())});
  }
  out.waits = read(in.waits());
  return out;
}

}  // namespace

Slices encode_status(const WorkerStatus& status) {
  StatusReply reply;
  reply.set_task(status.task.to_string());
  reply.set_incarnation(status.incarnation);
  reply.set_cluster_id(status.cluster_id);
  reply.set_pid(status.pid);
  reply.set_host(status.host);
  write(status.devices, reply.mutable_devices());
  if (status.gpu_kernels != nullptr) {
    for (const auto& [op, kernels] : *status.gpu_kernels) {
      for (const KernelTypes& types : kernels) {
        GpuKernel& out = *reply.add_gpu_kernels();
        out.set_op(op);
        for (const TypeConstraint& constraint : types) {
          GpuKernel::Types& written = *out.add_types();
          written.set_attr(constraint.attr);
          for (const DType dtype : constraint.allowed)
            written.add_allowed(static_cast<int32_t>(dtype));
        }
      }
    }
  }
  reply.set_sessions(status.sessions);
  reply.set_graphs(status.graphs);
  reply.set_running_steps(status.running_steps);
  reply.set_sent_bytes(status.sent_bytes);
  write(status.links, reply.mutable_links());
  return frame(reply);
}

WorkerStatus decode_status(const Bytes& bytes) {
  const auto reply = unframe<StatusReply>(bytes);
  WorkerStatus out;
  out.task = TaskName::parse(reply.task());
  out.incarnation = reply.incarnation();
  out.cluster_id = reply.cluster_id();
  out.pid = reply.pid();
  out.host = reply.host();
  out.devices = read(reply.devices(), reply.incarnation());
  if (reply.gpu_kernels_size() > 0) {
    auto table = std::make_shared<KernelTable>();
    for (const GpuKernel& kernel : reply.gpu_kernels()) {
      KernelTypes types;
      for (const GpuKernel::Types& constraint : kernel.types()) {
        types.push_back({constraint.attr(), {}});
        for (const int32_t dtype : constraint.allowed()) {
          check(is_dtype(dtype), "the GPU kernel of ", kernel.op(), " takes the dtype ", dtype,
                ", which is unknown");
          types.back().allowed.push_back(static_cast<DType>(dtype));
        }
      }
      (*table)[kernel.op()].push_back(std::move(types));
    }
    out.gpu_kernels = std::move(table);
  }
  out.sessions = reply.sessions();
  out.graphs = reply.graphs();
  out.running_steps = reply.running_steps();
  out.sent_bytes = reply.sent_bytes();
  out.links = read(reply.links());
  return out;
}

Slices encode_register_graph(const RegisterGraph& request) {
  RegisterGraphRequest out;
  out.set_request_id(request.request_id);
  out.set_worker_incarnation(request.worker_incarnation);
  out.set_session(request.session);
  out.set_isolate_state(request.isolate_state);
  out.set_master_task(request.master.to_string());
  out.set_master_incarnation(request.master_incarnation);
  for (const auto& [device, graph] : request.partitions) {
    Partition& partition = *out.add_partitions();
    partition.set_device(device);
    partition.set_graph_def(to_graph_def(graph, /*assigned_devices=*/true));
  }
  for (const CutEdge& edge : request.edges) write_edge(edge, *out.add_edges());
  for (const std::string& fetch : request.fetches) out.add_fetches(fetch);
  return frame(out);
}

RegisterGraph decode_register_graph(const Bytes& bytes) {
  const auto in = unframe<RegisterGraphRequest>(bytes);
  RegisterGraph out;
  out.request_id = in.request_id();
  out.worker_incarnation = in.worker_incarnation();
  out.session = in.session();
  out.isolate_state = in.isolate_state();
  out.master = TaskName::parse(in.master_task());
  out.master_incarnation = in.master_incarnation();
  for (const Partition& partition : in.partitions()) {
    Graph graph;
    from_graph_def(partition.graph_def(), graph);
    for (const auto& node : graph.nodes()) node->assigned_device = node->requested_device;
    out.partitions.emplace(partition.device(), std::move(graph));
  }
  for (const Edge& edge : in.edges()) out.edges.push_back(read_edge(edge));
  out.fetches.assign(in.fetches().begin(), in.fetches().end());
  return out;
}

Slices encode_graph_handle(uint64_t graph) {
  RegisterGraphReply out;
  out.set_graph(graph);
  return frame(out);
}

uint64_t decode_graph_handle(const Bytes& bytes) {
  return unframe<RegisterGraphReply>(bytes).graph();
}

Slices encode_deregister_graph(const DeregisterGraph& request) {
  DeregisterGraphRequest out;
  out.set_session(request.session);
  out.set_graph(request.graph);
  return frame(out);
}

DeregisterGraph decode_deregister_graph(const Bytes& bytes) {
  const auto in = unframe<DeregisterGraphRequest>(bytes);
  return {in.session(), in.graph()};
}

Slices encode_run_graph(const RunGraph& request) {
  RunGraphRequest out;
  out.set_request_id(request.request_id);
  out.set_worker_incarnation(request.worker_incarnation);
  out.set_session(request.session);
  out.set_graph(request.graph);
  out.set_step(static_cast<uint64_t>(request.step));
  out.set_trace(request.trace);
  describe(request.feeds, out.mutable_feeds());
  return frame(out, request.feeds);
}

RunGraph decode_run_graph(const Bytes& bytes) {
  FramedMessage message(bytes);
  const auto in = message.header<RunGraphRequest>();
  RunGraph out;
  out.request_id = in.request_id();
  out.worker_incarnation = in.worker_incarnation();
  out.session = in.session();
  out.graph = in.graph();
  out.step = static_cast<int64_t>(in.step());
  out.trace = in.trace();
  out.feeds = message.tensors(in.feeds());
  return out;
}

Slices encode_run_graph_result(const RunGraphResult& result, FrameSize size) {
  RunGraphReply out;
  out.set_code(static_cast<int>(result.status.code));
  out.set_message(result.status.message);
  out.set_derived(result.status.derived);
  out.set_node(result.status.node);
  write(result.activity, out.mutable_activity());
  describe(result.fetches, out.mutable_fetches());
  for (const leat::TraceEvent& event : result.events) {
    TraceEvent& copy = *out.add_events();
    copy.set_node(event.node);
    copy.set_op(event.op);
    copy.set_device(event.device);
    copy.set_start_ns(event.start_ns);
    copy.set_end_ns(event.end_ns);
    copy.set_output_bytes(event.output_bytes);
    copy.set_thread(event.thread);
    copy.set_inputs(event.inputs);
  }
  return frame(out, result.fetches, size);
}

RunGraphResult decode_run_graph_result(const Bytes& bytes) {
  FramedMessage message(bytes);
  const auto in = message.header<RunGraphReply>();
  RunGraphResult out;
  out.status = {code_of(in.code()), in.message(), in.derived(), in.node()};
  out.activity = read(in.activity());
  out.fetches = message.tensors(in.fetches());
  for (const TraceEvent& event : in.events()) {
    out.events.push_back({event.node(), event.op(), event.device(), event.start_ns(),
                          event.end_ns(), event.output_bytes(), event.thread(), event.inputs()});
  }
  return out;
}

Slices encode_abort_step(const AbortStep& request) {
  AbortStepRequest out;
  out.set_step(static_cast<uint64_t>(request.step));
  out.set_code(static_cast<int>(request.status.code));
  out.set_message(request.status.message);
  out.set_node(request.status.node);
  return frame(out);
}

AbortStep decode_abort_step(const Bytes& bytes) {
  const auto in = unframe<AbortStepRequest>(bytes);
  return {static_cast<int64_t>(in.step()), {code_of(in.code()), in.message(), true, in.node()}};
}

Slices encode_activity(const std::vector<StepActivity>& activity) {
  AbortStepReply out;
  write(activity, out.mutable_activity());
  return frame(out);
}

std::vector<StepActivity> decode_activity(const Bytes& bytes) {
  return read(unframe<AbortStepReply>(bytes).activity());
}

Slices encode_task_activity(const TaskActivity& activity) {
  ActivityReply out;
  write(activity, out);
  return frame(out);
}

TaskActivity decode_task_activity(const Bytes& bytes) {
  return read(unframe<ActivityReply>(bytes));
}

Slices encode_view(const ClusterView& view) {
  ViewReply out;
  out.set_asked(view.asked.to_string());
  for (const TaskView& task : view.tasks) {
    ViewReply::Task& copy = *out.add_tasks();
    copy.set_task(task.task.to_string());
    copy.set_address(task.address);
    copy.set_problem(task.problem);
    copy.set_pid(task.pid);
    copy.set_host(task.host);
    copy.set_sessions(task.sessions);
    copy.set_graphs(task.graphs);
    copy.set_sent_bytes(task.sent_bytes);
    write(task.links, copy.mutable_links());
    write(task.devices, copy.mutable_devices());
    write(task.activity, *copy.mutable_activity());
  }
  return frame(out);
}

ClusterView decode_view(const Bytes& bytes) {
  const auto in = unframe<ViewReply>(bytes);
  ClusterView out;
  out.asked = TaskName::parse(in.asked());
  for (const ViewReply::Task& task : in.tasks()) {
    out.tasks.push_back({TaskName::parse(task.task()), task.address(), task.problem(), task.pid(),
                         task.host(), task.sessions(), task.graphs(), read(task.activity()),
                         task.sent_bytes(), read(task.links()), read(task.devices(), 0)});
  }
  return out;
}

Slices encode_cleanup_session(const std::string& session) {
  CleanupSessionRequest out;
  out.set_session(session);
  return frame(out);
}

std::string decode_cleanup_session(const Bytes& bytes) {
  return unframe<CleanupSessionRequest>(bytes).session();
}

Slices encode_reset(const std::vector<std::string>& containers) {
  ResetRequest out;
  for (const std::string& container : containers) out.add_containers(container);
  return frame(out);
}

std::vector<std::string> decode_reset(const Bytes& bytes) {
  const auto in = unframe<ResetRequest>(bytes);
  return {in.containers().begin(), in.containers().end()};
}

}  // namespace leat::wire
