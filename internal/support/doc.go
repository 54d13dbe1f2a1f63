// Package support has what each back end can do, in one table. README's status is made of it, and
// tests of the back ends hold it to their devices.
package support
