// Package pool is for services that run on several servers. A [Resolver] says where these are now:
// [Fixed] is a list, [DNS] looks names up again and again, and any function that yields sets of
// addresses is one, too.
package pool
