"""Dask collections: their partitions, and sums over them. Nothing here is public.

Rankers and metrics take Dask arrays, DataFrames and Series themselves.
"""
