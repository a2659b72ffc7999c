// Package e2e tests what nothing smaller shows: the pages of pooldebug and of the
// examples in a browser, and what somebody gets who imports a module of this
// repository. It is a module of its own for what that needs.
package e2e
