// Clusters from the environments of Slurm and Open MPI, as srun 22.05 and mpirun 4.1 set them.
#include "distributed/cluster/cluster_resolvers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "core/error.h"
#include "tests/support/expect_error.h"

namespace leat {
namespace {

using Variables = std::map<std::string, std::string>;

Environment environment(Variables variables) {
  return [variables = std::move(variables)](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
}

Variables slurm(int rank, int local) {
  return {{"SLURM_PROCID", std::to_string(rank)},
          {"SLURM_LOCALID", std::to_string(local)},
          {"SLURM_STEP_NUM_TASKS", "5"},
          {"SLURM_STEP_NODELIST", "node[07-08]"},
          {"SLURM_STEP_TASKS_PER_NODE", "3,2"},
          {"SLURM_JOB_ID", "42"},
          {"SLURM_STEP_ID", "0"}};
}

Variables mpi(int rank, int size, int local_size) {
  return {{"OMPI_COMM_WORLD_RANK", std::to_string(rank)},
          {"OMPI_COMM_WORLD_SIZE", std::to_string(size)},
          {"OMPI_COMM_WORLD_LOCAL_RANK", std::to_string(rank % local_size)},
          {"OMPI_COMM_WORLD_LOCAL_SIZE", std::to_string(local_size)},
          {"PMIX_NAMESPACE", "2187526145"}};
}

TEST(HostList, ExpandsAsScontrolDoes) {
  using testing::ElementsAre;
  EXPECT_THAT(expand_host_list("localhost"), ElementsAre("localhost"));
  EXPECT_THAT(expand_host_list("node[08-10,3],gpu1"),
              ElementsAre("node08", "node09", "node10", "node3", "gpu1"));
  EXPECT_THAT(expand_host_list("r[1-2]n[1,3]-ib"),
              ElementsAre("r1n1-ib", "r1n3-ib", "r2n1-ib", "r2n3-ib"));
  for (const char* text :
       {"", "a,", "a[1-", "a[2-1]", "a[x]", "a]", "n[0-99999999]", "n[0-9999][0-9999][]"})
    expect_error_with(Code::invalid_argument, "", [&] { expand_host_list(text); });
}

TEST(Slurm, AssignsRanksToJobsSortedByName) {
  const ResolvedCluster found = resolve_slurm("worker=3,ps=2", environment(slurm(3, 0)));
  EXPECT_EQ(found.spec.to_json(),
            R"({"cluster":{"ps":["node07:8888","node07:8889"],"worker":["node07:8890",)"
            R"("node08:8888","node08:8889"]},"cluster_id":"slurm-42.0"})");
  EXPECT_EQ(found.task, (TaskName{"worker", 1}));
}

TEST(Slurm, EveryRankComputesTheSameCluster) {
  std::string first;
  for (int rank = 0; rank < 5; ++rank) {
    const auto found = resolve_slurm("", environment(slurm(rank, rank < 3 ? rank : rank - 3)));
    if (rank == 0) first = found.spec.to_json();
    EXPECT_EQ(found.spec.to_json(), first);
    EXPECT_EQ(found.task, rank == 0 ? (TaskName{"ps", 0}) : (TaskName{"worker", rank - 1}));
  }
}

TEST(Ranks, TheFirstOfSeveralSaysHowTheyMakeACluster) {
  EXPECT_EQ(note_on_unused_ranks(environment(slurm(0, 0))),
            "leat: srun started 5 copies of this program, and each of them trains alone: for one "
            "cluster, start srun -n 5 leat run slurm:ps=1,worker=* -- PROGRAM");
  EXPECT_EQ(note_on_unused_ranks(environment(mpi(0, 3, 3))),
            "leat: mpirun started 3 copies of this program, and each of them trains alone: for one "
            "cluster, start mpirun -n 3 leat run mpi:ps=1,worker=* -- PROGRAM");
  EXPECT_EQ(note_on_unused_ranks(environment(mpi(1, 3, 3))), "");
  EXPECT_EQ(note_on_unused_ranks(environment(mpi(0, 1, 1))), "");
  // In a batch script: srun has not started it.
  EXPECT_EQ(note_on_unused_ranks(environment({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}})), "");
}

TEST(Slurm, AcceptsOlderNamesAndAnotherPort) {
  const ResolvedCluster found =
      resolve_slurm("ps=1,worker=*,port=9000", environment({{"SLURM_PROCID", "2"},
                                                            {"SLURM_NTASKS", "4"},
                                                            {"SLURM_NODELIST", "a,b"},
                                                            {"SLURM_TASKS_PER_NODE", "2(x2)"}}));
  EXPECT_EQ(found.spec.to_json(),
            R"({"cluster":{"ps":["a:9000"],"worker":["a:9001","b:9000","b:9001"]}})");
  EXPECT_EQ(found.task, (TaskName{"worker", 1}));
}

TEST(Slurm, RejectsImpossibleLayouts) {
  const auto refused = [](const char* part, const char* jobs, Variables variables) {
    expect_error_with(Code::invalid_argument, part,
                      [&] { resolve_slurm(jobs, environment(std::move(variables))); });
  };
  refused("SLURM_PROCID is not set", "", {});
  refused("start it with srun", "", {});
  refused("there are 5 ranks", "ps=1,worker=2", slurm(0, 0));
  refused("there are 5 ranks", "ps=5,worker=*", slurm(0, 0));
  refused("--distribution=block", "", slurm(1, 0));
  refused("only one job", "ps=*,worker=*", slurm(0, 0));
  refused("is not JOB=COUNT", "ps", slurm(0, 0));
  refused("not a number", "ps=many", slurm(0, 0));
  Variables odd = slurm(0, 0);
  odd["SLURM_STEP_TASKS_PER_NODE"] = "3,1";
  refused("do not add up", "", odd);
  Variables beyond = slurm(7, 0);
  beyond.erase("SLURM_LOCALID");
  refused("SLURM_PROCID is 7, but SLURM_STEP_NUM_TASKS", "", beyond);
  const auto with = [](const char* variable, const char* value) {
    Variables out = slurm(0, 0);
    out[variable] = value;
    return out;
  };
  refused("SLURM_STEP_NUM_TASKS is 99999999999, which is too large", "",
          with("SLURM_STEP_NUM_TASKS", "99999999999"));
  refused("SLURM_STEP_NUM_TASKS is 70000, but a cluster has 1 to 65536 tasks", "",
          with("SLURM_STEP_NUM_TASKS", "70000"));
  refused("\"1(x2\" has no closing bracket", "", with("SLURM_STEP_TASKS_PER_NODE", "3,1(x2"));
  refused("\"1(x70000)\" stands for more than 65536 nodes", "",
          with("SLURM_STEP_TASKS_PER_NODE", "1(x70000)"));
}

TEST(OpenMpi, UsesLoopbackForOneHost) {
  const ResolvedCluster found = resolve_open_mpi("ps=1,worker=2", environment(mpi(2, 3, 3)));
  EXPECT_EQ(found.spec.to_json(),
            R"({"cluster":{"ps":["127.0.0.1:8888"],"worker":["127.0.0.1:8889","127.0.0.1:8890"]},)"
            R"("cluster_id":"mpi-2187526145"})");
  EXPECT_EQ(found.task, (TaskName{"worker", 1}));
}

TEST(OpenMpi, SeveralHostsComeFromTheSpecOrSlurm) {
  const ResolvedCluster named =
      resolve_open_mpi("ps=1,worker=3,hosts=a;b", environment(mpi(2, 4, 2)));
  EXPECT_EQ(named.spec.address({"worker", 1}), "b:8888");
  EXPECT_EQ(named.task, (TaskName{"worker", 1}));
  expect_error_with(Code::invalid_argument, "name the hosts",
                    [&] { resolve_open_mpi("", environment(mpi(2, 4, 2))); });
  Variables both = mpi(3, 4, 2);
  both.merge(Variables{
      {"SLURM_NTASKS", "4"}, {"SLURM_JOB_NODELIST", "n[1-2]"}, {"SLURM_TASKS_PER_NODE", "2(x2)"}});
  EXPECT_EQ(resolve_open_mpi("", environment(both)).spec.address({"worker", 2}), "n2:8889");
  expect_error_with(Code::invalid_argument, "mpirun",
                    [&] { resolve_open_mpi("", environment({})); });
  Variables part = mpi(0, 2, 2);
  part.erase("OMPI_COMM_WORLD_LOCAL_SIZE");
  expect_error_with(Code::invalid_argument,
                    "OMPI_COMM_WORLD_LOCAL_SIZE is not set: mpirun sets it together",
                    [&] { resolve_open_mpi("", environment(part)); });
  expect_error_with(Code::invalid_argument,
                    "OMPI_COMM_WORLD_SIZE is 2000000000, but a cluster has 1 to 65536 tasks",
                    [&] { resolve_open_mpi("", environment(mpi(0, 2000000000, 2))); });
}

}  // namespace
}  // namespace leat
