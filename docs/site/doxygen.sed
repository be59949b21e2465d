# Comments as doxygen wants them: the first ones describe the file, one behind a member describes it.
1s,^// ,/// \\file\n/// ,
2,/^#pragma once/s,^//( |$),///\1,
s,^(  [^/]*[;{}\,]) +// ,\1  ///< ,
