// Package hook joins optional funcs: the joined one calls the first and then the
// second, a nil one is left out, and two nil ones make nil.
package hook

// Join2 joins funcs of two arguments.
func Join2[A, B any](f, g func(A, B)) func(A, B) {
	if f == nil || g == nil {
		return either(f, g, f == nil)
	}
	return func(a A, b B) { f(a, b); g(a, b) }
}

// Join3 joins funcs of three arguments.
func Join3[A, B, C any](f, g func(A, B, C)) func(A, B, C) {
	if f == nil || g == nil {
		return either(f, g, f == nil)
	}
	return func(a A, b B, c C) { f(a, b, c); g(a, b, c) }
}

// Join4 joins funcs of four arguments.
func Join4[A, B, C, D any](f, g func(A, B, C, D)) func(A, B, C, D) {
	if f == nil || g == nil {
		return either(f, g, f == nil)
	}
	return func(a A, b B, c C, d D) { f(a, b, c, d); g(a, b, c, d) }
}

// Join5 joins funcs of five arguments.
func Join5[A, B, C, D, E any](f, g func(A, B, C, D, E)) func(A, B, C, D, E) {
	if f == nil || g == nil {
		return either(f, g, f == nil)
	}
	return func(a A, b B, c C, d D, e E) { f(a, b, c, d, e); g(a, b, c, d, e) }
}

func either[F any](f, g F, second bool) F {
	if second {
		return g
	}
	return f
}
