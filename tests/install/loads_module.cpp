#include <dlfcn.h>

#include <cstdio>

int main(int, char** argv) {
  void* module = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (module == nullptr) {
    std::puts(dlerror());
    return 1;
  }
  const auto use = reinterpret_cast<int (*)()>(dlsym(module, "use_fedsmooth"));
  return use == nullptr ? 1 : use();
}
