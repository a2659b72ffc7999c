// Package cluster makes the pools of several replicas one: each scope has one owner,
// the replica whose pool runs it, whichever replica its calls reach.
package cluster
