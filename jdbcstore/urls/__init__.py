"""JDBC URLs, one vendor a file: `parse(text)` makes what stands behind `jdbc:` a SQLAlchemy URL."""
