"""Flask-SQLAlchemy of the console and of ``flask db``.

Apart from ``engine``, so that the workers do without Flask: that takes 8 MB in each of their processes.
"""

from flask_sqlalchemy import SQLAlchemy

from app.models.base import Base

db = SQLAlchemy(model_class=Base, session_options={"autoflush": False})
