#include <fedsmooth/fedsmooth.h>

// Goes through the library: configuration, data, and the refusal of a file that is not there.
extern "C" int use_fedsmooth() {
  using namespace fedsmooth;
  const Dataset shapes = load_dataset({"shapes"}, Split::kTest);
  try {
    load_model("/no/such/model.safetensors");
  } catch (const Error&) {
    return shapes.classes() == 10 ? 0 : 1;
  }
  return 1;
}
