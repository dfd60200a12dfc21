"""The data sources, as PySpark's Python DataSource API wants them: what is read, in which tasks.

What a task gives is made in the modules beside this folder, which know nothing of Spark. Nothing is
imported here: each process of Spark's that plans or reads imports its source, and not the others.
"""
