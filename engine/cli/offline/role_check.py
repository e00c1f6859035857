"""Opens the role of a settings file as `serve` does, without network and without a trace on the disk.

A venue has a store in memory of a temporary folder and chains that never answer, so that each part reads its
settings and refuses them with the sentence that `serve` would refuse them with.
"""
