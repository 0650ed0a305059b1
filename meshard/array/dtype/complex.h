// Complex numbers as array elements.
#pragma once
#include <string>

#include "meshard/base/cat.h"

namespace meshard {

/// A value: a complex number, stored as its real part followed by its imaginary part. The memory
/// layout follows the array API standard, C and std::complex. Does not include <complex>, which
/// would pull streams into every file; converts to and from std::complex.
template <class T>
struct Complex {
  T real = 0;
  T imag = 0;

  constexpr Complex() = default;
  constexpr Complex(T real_part, T imag_part = 0)  // NOLINT: a real number is a complex one
      : real(real_part), imag(imag_part) {}
  /// Converts from a type with real() and imag(), such as std::complex<T>.
  template <class Z>
  requires requires(const Z& z) {
    z.real();
    z.imag();
  }
  constexpr Complex(const Z& z)  // NOLINT
      : real(static_cast<T>(z.real())), imag(static_cast<T>(z.imag())) {}
  /// Converts to a type that has real() and imag() and is constructed from two parts.
  template <class Z>
  requires requires(const Z& z) {
    z.real();
    z.imag();
  }
  constexpr operator Z() const { return Z(real, imag); }  // NOLINT

  /// `1+2j`, as NumPy prints it.
  std::string to_string() const { return cat(real, __builtin_signbit(imag) ? "" : "+", imag, 'j'); }
  friend constexpr bool operator==(const Complex& a, const Complex& b) {
    return a.real == b.real && a.imag == b.imag;
  }
};
/// An element of c64, or of c128.
using Complex64 = Complex<float>;
using Complex128 = Complex<double>;

}  // namespace meshard
