/* All-reduce of one tensor with MPI, between processes of one host.
 *   mpicc -O2 mpi_all_reduce.c -o mpi_all_reduce && mpirun -n 3 ./mpi_all_reduce MIB REPEATS
 * Every rank has a buffer of so many MiB and sums it in place; prints rank 0's times as a JSON line. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int by_size(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (argc != 3) {
    if (rank == 0) fprintf(stderr, "mpi_all_reduce MIB REPEATS\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  const int count = (int)(atof(argv[1]) * (1 << 20) / 4), repeats = atoi(argv[2]);
  float* values = malloc(sizeof(float) * (size_t)count);
  double* times = malloc(sizeof(double) * (size_t)repeats);
  for (int i = 0; i < count; ++i) values[i] = (float)(rank + 1);
  MPI_Allreduce(MPI_IN_PLACE, values, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  const float expected = (float)(size * (size + 1) / 2);
  for (int i = 0; i < count; ++i) {
    if (values[i] != expected) {
      fprintf(stderr, "rank %d: the sum is %g\n", rank, (double)values[i]);
      MPI_Abort(MPI_COMM_WORLD, 1);
    }
    values[i] = 0; /* stays 0: what grew would become infinite */
  }
  for (int i = -10; i < repeats; ++i) {
    const double start = MPI_Wtime();
    MPI_Allreduce(MPI_IN_PLACE, values, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    if (i >= 0) times[i] = MPI_Wtime() - start;
  }
  if (rank == 0) {
    char library[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    MPI_Get_library_version(library, &length);
    for (int i = 0; i < length; ++i) {
      if (library[i] == ',' || library[i] == '"') library[i] = '\0';
    }
    qsort(times, (size_t)repeats, sizeof(double), by_size);
    printf("{\"bench\": \"all_reduce\", \"peer\": \"%s\", \"workers\": %d, \"median_s\": %g, \"min_s\": %g}\n", library,
           size, times[repeats / 2], times[0]);
  }
  MPI_Finalize();
  return 0;
}
