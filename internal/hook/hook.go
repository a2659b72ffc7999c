// Package hook puts together funcs that are called with what happens.
package hook

import "context"

// Join makes f call g after itself. Either may be nil.
func Join[T any](f *func(context.Context, T), g func(context.Context, T)) {
	first := *f
	switch {
	case g == nil:
	case first == nil:
		*f = g
	default:
		*f = func(ctx context.Context, info T) { first(ctx, info); g(ctx, info) }
	}
}

// Guard makes f a func that doesn't panic: a panic is reported to panicked with the name.
// A func that is nil stays so.
func Guard[T any](f *func(context.Context, T), name string, panicked func(name string, v any)) {
	if g := *f; g != nil {
		*f = func(ctx context.Context, info T) {
			defer func() {
				if v := recover(); v != nil {
					panicked(name, v)
				}
			}()
			g(ctx, info)
		}
	}
}
