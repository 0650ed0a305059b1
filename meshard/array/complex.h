// Complex numbers as elements of arrays.
#pragma once

namespace meshard {

/// A value: a complex number, laid out as the array API standard, C and std::complex lay it out:
/// the real part, then the imaginary one. Without <complex>, whose streams every file would read;
/// std::complex converts to it and back.
template <class T>
struct Complex {
  T real = 0;
  T imag = 0;

  constexpr Complex() = default;
  constexpr Complex(T real_part, T imag_part = 0)  // NOLINT: a real number is a complex one
      : real(real_part), imag(imag_part) {}
  /// From a type with real() and imag(), such as std::complex<T>.
  template <class Z>
  requires requires(const Z& z) {
    z.real();
    z.imag();
  }
  constexpr Complex(const Z& z)  // NOLINT
      : real(static_cast<T>(z.real())), imag(static_cast<T>(z.imag())) {}
  /// To a type made of two parts that has real() and imag().
  template <class Z>
  requires requires(const Z& z) {
    z.real();
    z.imag();
  }
  constexpr operator Z() const { return Z(real, imag); }  // NOLINT

  friend constexpr bool operator==(const Complex& a, const Complex& b) {
    return a.real == b.real && a.imag == b.imag;
  }
};

using Complex64 = Complex<float>;
using Complex128 = Complex<double>;

}  // namespace meshard
