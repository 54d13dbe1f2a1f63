// Package owners says whose a user id is, for what bounds users: with user namespaces a user
// without any right has thousands of ids.
package owners
